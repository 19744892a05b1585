package rewrite

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
)

// shown is a widget as v1beta1 shows it.
type shown struct {
	Metadata Metadata
	Spec     map[string]any
}

func (s *fixture) shown(name string) shown {
	s.Helper()
	resp := s.Get("v1beta1", name)
	s.Must(resp.Err())
	var object shown
	s.Must(json.Unmarshal(resp.Body, &object))
	return object
}

// labels are the versions that an object's managedFields entries name, by owner.
func (s *fixture) labels(name string) map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, e := range s.shown(name).Metadata.ManagedFields {
		out[e.owner()] = strings.TrimSpace(out[e.owner()] + " " + e.Version())
	}
	return out
}

// rewritten is a scene whose objects are all at v1beta1.
func rewritten(t *testing.T, n int) *fixture {
	s := newScene(t)
	s.CreateMany(n)
	s.Accepted(s.Apply("v1alpha1", "applied", "team", `{"size":1,"color":"blue"}`), nil)
	s.switchStorage()
	_, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	return s
}

func TestRelabelChangesTheVersionOfEntriesAndNothingElse(t *testing.T) {
	s := rewritten(t, 100)
	before := s.stored("w-001")
	got, err := s.rewriter().Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Relabelled != 101 || got.Written != 101 || len(got.Failures) != 0 {
		t.Errorf("%+v", got)
	}
	if !maps.Equal(got.EntriesBefore, map[string]int{"v1alpha1": 101}) || !maps.Equal(got.EntriesAfter, map[string]int{"v1beta1": 101}) {
		t.Errorf("entries before %v, after %v", got.EntriesBefore, got.EntriesAfter)
	}
	if l := s.labels("applied"); !maps.Equal(l, map[string]string{"team (Apply)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
	after := s.stored("w-001")
	if l := s.labels("w-001"); !maps.Equal(l, map[string]string{"creator (Update)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
	if after.Metadata.Generation != before.Metadata.Generation || !maps.Equal(after.Spec, before.Spec) {
		t.Errorf("was %+v, is %+v", before, after)
	}
	again, err := s.rewriter().Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if again.Written+again.Unchanged != 0 {
		t.Errorf("a second time: %+v", again)
	}
}

func TestApplyWorksAfterRelabellingAndTheVersionsEnd(t *testing.T) {
	s := rewritten(t, 1)
	// The team's next apply names a field that v1alpha1 lacks.
	resp := s.Apply("v1beta1", "applied", "team", `{"size":1,"color":"blue","tier":"gold"}`)
	if resp.Status != http.StatusInternalServerError {
		t.Errorf("before: %d %s", resp.Status, resp.Message)
	}
	_, err := s.rewriter().Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	s.Must(Trim(t.Context(), s.Client, s.Resource, []string{"v1beta1"}, s.guard()))
	s.PatchCRD(`[{"op":"remove","path":"/spec/versions/0"}]`)
	s.Until("v1alpha1 is gone", func() bool { return s.Get("v1alpha1", "").Status == http.StatusNotFound })
	s.Accepted(s.Apply("v1beta1", "applied", "team", `{"size":1,"color":"blue","tier":"gold"}`), nil)
	if l := s.labels("applied"); !maps.Equal(l, map[string]string{"team (Apply)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
}

func TestRelabelWithoutBytes(t *testing.T) {
	s := rewritten(t, 20)
	blind := s.rewriter()
	blind.Storage = nil
	got, err := blind.Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Relabelled != 21 || got.EntriesAfter["v1alpha1"] != 0 || got.EntriesAfter["v1beta1"] != 21 {
		t.Errorf("%+v", got)
	}
}

// Two updates by one manager, at different versions, would become one entry, and the server keeps the fields of one.
func TestRelabelJoinsTheEntriesOfOneManager(t *testing.T) {
	s := newScene(t)
	label := func(version, patch string) {
		s.Accepted(s.Client.Patch(t.Context(), s.Path(version, "edited"), evidence.MergePatch, "editor", []byte(patch)))
	}
	body := `{"apiVersion":"` + s.Resource.Group + `/v1alpha1","kind":"Widget","metadata":{"name":"edited","labels":{"a":"1"}}}`
	s.Accepted(s.Client.Create(t.Context(), s.Path("v1alpha1", ""), "editor", []byte(body)))
	s.switchStorage()
	label("v1beta1", `{"metadata":{"labels":{"b":"2"}}}`)
	if l := s.labels("edited"); len(strings.Fields(l["editor (Update)"])) != 2 {
		t.Fatalf("the scene is not the one that is meant: %v", l)
	}
	got, err := s.rewriter().Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Relabelled != 1 || len(got.Failures) != 0 {
		t.Fatalf("%+v", got)
	}
	entries := s.stored("edited").Metadata.ManagedFields
	fields, err := json.Marshal(entries)
	s.Must(err)
	if len(entries) != 1 || !strings.Contains(string(fields), "f:a") || !strings.Contains(string(fields), "f:b") {
		t.Errorf("the manager has lost fields: %s", fields)
	}
}

// entriesChange relabels an object of which another manager becomes an owner at v1alpha1 just before the first patch.
func entriesChange(t *testing.T, another string) {
	s := rewritten(t, 0)
	var patches atomic.Int32
	r := s.rewriter()
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			if req.Method == http.MethodPatch && patches.Add(1) == 1 {
				s.Accepted(s.Apply("v1alpha1", "applied", another, `{"old":"x"}`), nil)
			}
			return nil
		}}
	})
	got, err := r.Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Relabelled != 1 || len(got.Failures) != 0 || patches.Load() != 2 {
		t.Errorf("%d patches: %+v", patches.Load(), got)
	}
	if l := s.labels("applied"); !maps.Equal(l, map[string]string{"team (Apply)": "v1beta1", another + " (Apply)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
}

// The new entry comes first, so that the indexes shift: the patch's tests fail. (Or the second has just turned, by which
// entries are sorted, and it is the other case.)
func TestRelabelBuildsThePatchAnewWhenTheEntriesShift(t *testing.T) { entriesChange(t, "another") }

// The new entry comes last: the patch is accepted, and the server keeps the entries all the same, since it cannot express
// the object at the version of the new one.
func TestRelabelBuildsThePatchAnewWhenTheServerKeepsTheEntries(t *testing.T) {
	entriesChange(t, "zebra")
}

func TestRelabelLeavesARecreatedObjectAlone(t *testing.T) {
	s := rewritten(t, 0)
	var patches atomic.Int32
	r := s.rewriter()
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			if req.Method == http.MethodPatch && patches.Add(1) == 1 {
				s.Accepted(s.Client.Delete(t.Context(), s.Path("v1beta1", "applied")))
				s.Create("v1beta1", "applied", `{"size":2}`)
			}
			return nil
		}}
	})
	got, err := r.Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Unchanged != 1 || got.Relabelled != 0 || len(got.Failures) != 0 {
		t.Errorf("%+v", got)
	}
	if l := s.labels("applied"); !maps.Equal(l, map[string]string{"creator (Update)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
}

// At the new version, a stale object's relabelling would make the rewriter the owner of the new default.
func TestRelabelWantsRewrittenObjects(t *testing.T) {
	s := newScene(t)
	s.CreateMany(3)
	s.switchStorage()
	got, err := s.rewriter().Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if len(got.Failures) != 3 || got.Failures[0].Reason != NotRewritten || s.counts()["v1alpha1"] != 3 {
		t.Errorf("%+v; stored %v", got, s.counts())
	}
	blind := s.rewriter()
	blind.Storage = nil
	got, err = blind.Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if len(got.Failures) != 3 || got.Failures[0].Reason != OwnersChanged || !strings.Contains(got.Failures[0].Message, "has become an owner") {
		t.Errorf("without the bytes it is found out afterwards: %+v", got)
	}
}

func TestRewriteAndRelabelIsOneWriteAnObject(t *testing.T) {
	s := newScene(t)
	s.CreateMany(50)
	s.Accepted(s.Apply("v1alpha1", "applied", "team", `{"size":1,"color":"blue"}`), nil)
	before := s.stored("w-003")
	s.switchStorage()
	// One is at v1beta1 already, with a field that v1alpha1 lacks: the old version is not the way for it.
	s.Accepted(s.Client.Patch(t.Context(), s.Path("v1beta1", "w-000"), evidence.MergePatch, "", []byte(`{"spec":{"tier":"gold"}}`)))
	sent := s.Exchanges.Seq()

	got, err := s.rewriter().RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Written != 51 || got.Relabelled != 51 || got.Through != "v1alpha1" || len(got.Failures) != 0 {
		t.Errorf("%+v", got)
	}
	if got.After.ByVersion["v1alpha1"] != 0 || got.EntriesAfter["v1alpha1"] != 0 {
		t.Errorf("left: %v, entries %v", got.After, got.EntriesAfter)
	}
	patches := slices.DeleteFunc(s.Exchanges.Since(sent), func(x evidence.Exchange) bool { return x.Method != http.MethodPatch })
	if len(patches) != 51 {
		t.Errorf("%d patches of 51 objects", len(patches))
	}
	if tier := s.stored("w-000").Spec["tier"]; tier != "gold" {
		t.Errorf("the field that v1alpha1 lacks is %v", tier)
	}
	after := s.stored("w-003")
	if after.Metadata.Generation != before.Metadata.Generation || after.Spec["tier"] != nil {
		t.Errorf("through the old version there is no new generation and no default in the bytes: %+v", after)
	}
	if l := s.labels("applied"); !maps.Equal(l, map[string]string{"team (Apply)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
	if resp := s.Apply("v1beta1", "applied", "team", `{"size":1,"color":"blue","tier":"gold"}`); resp.Status != http.StatusOK {
		t.Errorf("the team's next apply: %d %s", resp.Status, resp.Message)
	}
}

// Somebody stores the object at the new version after it was listed: through the old one, its new field would go.
func TestRewriteAndRelabelTakesNothingFromObjectsThatWereWrittenMeanwhile(t *testing.T) {
	s := newScene(t)
	s.Create("v1alpha1", "busy", `{"size":1}`)
	s.switchStorage()
	var patches atomic.Int32
	r := s.rewriter()
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			if req.Method == http.MethodPatch && patches.Add(1) == 1 {
				s.Accepted(s.Client.Patch(t.Context(), s.Path("v1beta1", "busy"), evidence.MergePatch, "busy", []byte(`{"spec":{"tier":"gold"}}`)))
			}
			return nil
		}}
	})
	got, err := r.RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if len(got.Failures) != 0 || got.EntriesAfter["v1alpha1"] != 0 {
		t.Errorf("%+v", got)
	}
	if tier := s.stored("busy").Spec["tier"]; tier != "gold" {
		t.Errorf("tier is %v", tier)
	}
}

func TestRewriteAndRelabelNeedsTheBytesAndAServedVersion(t *testing.T) {
	s := newScene(t)
	s.CreateMany(1)
	s.switchStorage()
	blind := s.rewriter()
	blind.Storage = nil
	if _, err := blind.RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1"); err == nil {
		t.Error("without the bytes it went on")
	}
	s.PatchCRD(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	_, err := s.rewriter().RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	if err == nil || !strings.Contains(err.Error(), "none of v1alpha1 is served") {
		t.Errorf("error: %v", err)
	}
	if n := s.counts()["v1alpha1"]; n != 1 {
		t.Errorf("%d at v1alpha1", n)
	}
}
