package rewrite

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
)

// dropTier is what a webhook has to do on the way to v1alpha1, which lacks the field: then the server can convert an object
// to the version of an old entry, and every write through v1beta1 makes its writer the owner of the default.
var dropTier = conversion.Drop("spec.tier")

// content is what a rewrite has to leave as it is.
type content struct {
	uid    string
	spec   map[string]any
	owners []string
}

// content is that of a widget as v1beta1 shows it, and its default: of an object that a webhook converts, the server shows
// that only when it has been written through v1beta1.
func (s *fixture) content(name string) content {
	s.Helper()
	object := s.shown(name)
	if object.Spec["tier"] == nil {
		object.Spec["tier"] = "standard"
	}
	return content{object.Metadata.UID, object.Spec, owners(&object.Metadata)}
}

// mixed creates widgets of every kind that a rewrite finds, all stored at v1alpha1, and says what they are.
func (s *fixture) mixed() map[string]content {
	s.Helper()
	s.CreateMany(10)
	for i := range 10 {
		s.Accepted(s.Apply("v1alpha1", fmt.Sprintf("applied-%d", i), "team", `{"size":1,"color":"blue"}`), nil)
	}
	s.Create("v1beta1", "late", `{"size":1}`) // its only entry is at v1beta1
	s.switchStorage()
	all := map[string]content{}
	s.Must(EachMetadata(s.Context(), s.Client, s.Resource, "v1beta1", s.Namespace, func(m *Metadata) error {
		all[m.Name] = s.content(m.Name)
		return nil
	}))
	return all
}

// same checks that objects are stored at v1beta1, with the content and the owners that they had, and that a team may go on
// to apply the field of which v1beta1 has a default.
func (s *fixture) same(before map[string]content) {
	s.Helper()
	for name, was := range before {
		if now := s.content(name); !reflect.DeepEqual(now, was) {
			s.Errorf("%s was %v, is %v", name, was, now)
		}
		for owner, version := range s.labels(name) {
			if strings.HasPrefix(owner, Manager) || version != "v1beta1" {
				s.Errorf("%s has an entry of %s at %s", name, owner, version)
			}
		}
		if v := s.value(name).Version(); v != "v1beta1" {
			s.Errorf("%s is stored at %s", name, v)
		}
		if resp := s.Apply("v1beta1", name, "another team", `{"tier":"gold"}`); resp.Status != http.StatusOK {
			s.Errorf("the next apply of %s: %d %s", name, resp.Status, resp.Message)
		}
	}
}

func TestRewriteAndRelabelCostsAWebhookTwoReviewsAnObject(t *testing.T) {
	for name, back := range map[string][]conversion.Operation{"keeps the default": nil, "drops the default": {dropTier}} {
		t.Run(name, func(t *testing.T) {
			s, webhook := newConverted(t, back...)
			before := s.mixed()
			var got *Result
			reviews := counted(webhook, func() {
				var err error
				got, err = s.rewriter().RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
				s.Must(err)
			})
			if got.Written != len(before) || got.Relabelled != len(before)-1 || got.Through != "" || len(got.Failures) != 0 {
				t.Errorf("of %d objects: %+v", len(before), got)
			}
			if a := float64(reviews) / float64(len(before)); a > 2.1 || reviews == 0 {
				t.Errorf("%.2f reviews an object", a)
			}
			s.same(before)
		})
	}
}

func TestRewriteAndRelabelThroughAWebhookNeedsNoServedOldVersion(t *testing.T) {
	s, _ := newConverted(t, dropTier)
	before := s.mixed()
	s.PatchCRD(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	s.Until("v1alpha1 is gone", func() bool { return s.Get("v1alpha1", "").Status == http.StatusNotFound })
	got, err := s.rewriter().RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
	if got.Written != len(before) || len(got.Failures) != 0 {
		t.Errorf("of %d objects: %+v", len(before), got)
	}
	s.same(before)
}

func TestRewriteThenRelabelLeavesTheOwners(t *testing.T) {
	s, _ := newConverted(t, dropTier)
	before := s.mixed()
	for _, work := range []func() (*Result, error){
		func() (*Result, error) { return s.rewriter().Rewrite(t.Context(), "v1beta1") },
		func() (*Result, error) {
			return s.rewriter().Relabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
		},
	} {
		got, err := work()
		s.Must(err)
		if len(got.Failures) != 0 {
			t.Errorf("%+v", got)
		}
	}
	s.same(before)
}

// late is a scene with an object that is stored at v1alpha1 and has but an entry at v1beta1: also without a webhook, who
// writes it through v1beta1 becomes the owner of the default.
func late(t *testing.T) *fixture {
	s := newScene(t)
	s.Create("v1beta1", "late", `{"size":1}`)
	s.switchStorage()
	return s
}

func TestTheServerMakesAWriterTheOwnerOfADefault(t *testing.T) {
	s := late(t)
	s.Accepted(s.Client.Patch(t.Context(), s.Path("v1beta1", "late"), evidence.MergePatch, "writer", []byte(`{}`)))
	if l := s.labels("late"); l["writer (Update)"] != "v1beta1" {
		t.Errorf("owners: %v", l)
	}
	if resp := s.Apply("v1beta1", "late", "team", `{"tier":"gold"}`); resp.Status != http.StatusConflict {
		t.Errorf("the next apply: %d %s", resp.Status, resp.Message)
	}
}

// Work that ended between its two writes of an object is taken up by doing it again.
func TestWorkAgainGivesUpWhatTheRewriterOwns(t *testing.T) {
	for name, work := range map[string]func(*Rewriter) (*Result, error){
		"rewrite": func(r *Rewriter) (*Result, error) { return r.Rewrite(t.Context(), "v1beta1") },
		"rewrite and relabel": func(r *Rewriter) (*Result, error) {
			return r.RewriteAndRelabel(t.Context(), []string{"v1alpha1"}, "v1beta1")
		},
		"rewrite without the bytes": func(r *Rewriter) (*Result, error) {
			r.Storage = nil
			return r.Rewrite(t.Context(), "v1beta1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := late(t)
			s.Accepted(s.Client.Patch(t.Context(), s.Path("v1beta1", "late"), evidence.MergePatch, Manager, []byte(`{}`)))
			got, err := work(s.rewriter())
			s.Must(err)
			if got.Written != 1 || len(got.Failures) != 0 {
				t.Errorf("%+v", got)
			}
			if l := s.labels("late"); !maps.Equal(l, map[string]string{"creator (Update)": "v1beta1"}) {
				t.Errorf("owners: %v", l)
			}
		})
	}
}

// Another owner comes between the two writes, and its entry comes first: the rewriter's is not where it was.
func TestRewriteGivesUpItsOwnEntryAlone(t *testing.T) {
	s := late(t)
	var patches atomic.Int32
	r := s.rewriter()
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			if req.Method == http.MethodPatch && patches.Add(1) == 2 {
				s.Accepted(s.Apply("v1beta1", "late", "another", `{"color":"red"}`), nil)
			}
			return nil
		}}
	})
	got, err := r.Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if got.Written != 1 || len(got.Failures) != 0 || patches.Load() != 3 {
		t.Errorf("%d patches: %+v", patches.Load(), got)
	}
	if l := s.labels("late"); !maps.Equal(l, map[string]string{"creator (Update)": "v1beta1", "another (Apply)": "v1beta1"}) {
		t.Errorf("owners: %v", l)
	}
}
