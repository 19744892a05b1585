package kind_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/cluster/kind"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/steps"
	"github.com/crdlab/crdlab/lab/storage"
)

// measured are the steps whose right answer may differ between two runs, and why.
var measured = map[string]string{
	"pitfalls/large-rewrite/rewrite": "at which pace others wait longer is a matter of time, and the few objects of a test are written in no time",
}

// TestEveryTrackShowsTheSameOnBothClusters runs every track on the embedded server and on kind, and compares what each step
// asked, what it was answered, what it proved, and what was there at its end. What is measured, and may differ, is listed
// above with its reason; nothing else differs. What the embedded server cannot carry is in labtest.NotOnEmbedded, and run
// below.
func TestEveryTrackShowsTheSameOnBothClusters(t *testing.T) {
	onKind := theCluster(t)
	server, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(context.Background())
	for _, track := range labtest.OnEmbedded() {
		t.Run(track.ID, func(t *testing.T) {
			here, there := told(t, track, server), told(t, track, onKind)
			for i, step := range track.Steps {
				if here[i] != there[i] {
					t.Errorf("%s differs.\nembedded:\n%s\nkind:\n%s", step.ID, here[i], there[i])
				}
			}
		})
	}
}

// TestTheTracksThatOnlyAFullClusterCarries runs them. A check may be skipped where this release, or chance, did not show what
// it is about; then it says with which version and after how many tries.
func TestTheTracksThatOnlyAFullClusterCarries(t *testing.T) {
	onKind := theCluster(t)
	for id, reason := range labtest.NotOnEmbedded {
		t.Run(id, func(t *testing.T) {
			t.Log(reason)
			track, err := steps.Find(id)
			if err != nil {
				t.Fatal(err)
			}
			s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: onKind})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(context.Background())
			runAll(t, s)
			noMigrations(t, onKind, s.State().Resource)
		})
	}
}

// TestTheClusterRewrites runs the track with the cluster's StorageVersionMigration: the record is trimmed by its controller, the
// managers stay at the old version, and the track ends complete all the same.
func TestTheClusterRewrites(t *testing.T) {
	onKind := theCluster(t)
	track, err := steps.Find("migrate")
	if err != nil {
		t.Fatal(err)
	}
	s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: onKind, RewriteWith: lesson.WithMigration})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	runAll(t, s)
	now := s.State()
	rewrite, attempt := now.Steps[track.Step("rewrite")], now.Steps[track.Step("attempt-removal")]
	m := rewrite.Rewrite.Migration
	if m == nil || m.State != "Succeeded" || !slices.Equal(rewrite.After.StoredVersions(), []string{"v1beta1"}) || rewrite.Answer != "shrinks" {
		t.Errorf("the migration was %+v, the record %v, the answer %s", m, rewrite.After.StoredVersions(), rewrite.Answer)
	}
	if attempt.Answer != "accepted" || attempt.After.Version("v1alpha1") == nil {
		t.Errorf("the removal was to be accepted, and not done: %s", attempt.Answer)
	}
	noMigrations(t, onKind, now.Resource)
}

// runAll runs a session to its end: nothing may fail, and what is skipped has its reason.
func runAll(t *testing.T, s *lab.Session) {
	t.Helper()
	if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		t.Logf("%s %s, answer %s, %s: %s", step.ID, step.Result, step.Answer, step.Took, step.Explanation)
		for _, c := range step.Checks {
			t.Logf("  %s %s: %s; want %q, got %q %s", c.ID, c.Result, c.Title, c.Want, c.Got, c.Reason)
			if c.Result == lesson.Skipped && !strings.Contains(c.Reason, "tried: ") {
				t.Errorf("%s/%s was skipped without version and tries: %s", step.ID, c.ID, c.Reason)
			}
		}
		if step.Result == lesson.Failed {
			t.Errorf("%s failed: %v", step.ID, step.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if now := s.State(); now.Current != len(now.Steps)-1 {
		t.Errorf("the run ended at %s", now.Steps[now.Current].ID)
	}
}

// noMigrations resets, and looks whether a StorageVersionMigration is left; those of others stay.
func noMigrations(t *testing.T, c *kind.Cluster, r storage.Resource) {
	t.Helper()
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const foreign = `{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration","metadata":{"name":"somebodys"},"spec":{"resource":{"group":"","resource":"configmaps"}}}`
	if _, err := client.Create(t.Context(), rewrite.MigrationsPath, "", []byte(foreign)); err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(t.Context(), cluster.Scope{Resource: r}); err != nil {
		t.Fatal(err)
	}
	list, err := client.Get(t.Context(), rewrite.MigrationsPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(list.Body), r.String()) || !strings.Contains(string(list.Body), "somebodys") {
		t.Errorf("after a reset there are %s", list.Body)
	}
	if _, err := client.Delete(t.Context(), rewrite.MigrationsPath+"/somebodys"); err != nil {
		t.Fatal(err)
	}
}

// told runs a track and tells each step in words that two clusters must have in common: no times, uids or revisions, and
// none of the lab's own reads.
func told(t *testing.T, track *lesson.Track, c cluster.Cluster) []string {
	t.Helper()
	s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var out []string
	if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		var b strings.Builder
		answer := step.Answer
		if measured[track.ID+"/"+step.ID] != "" {
			answer = "is measured"
		}
		fmt.Fprintf(&b, "%s, answer %s\n", step.Result, answer)
		b.WriteString(requests(step.Exchanges))
		for _, c := range step.Checks {
			fmt.Fprintf(&b, "check %s %s\n", c.ID, c.Result)
		}
		observed(&b, step.After)
		out = append(out, b.String())
	}); err != nil {
		t.Fatal(err)
	}
	if len(out) != len(track.Steps) {
		t.Fatalf("the run ended after %d steps: %v", len(out), s.State().Result())
	}
	return out
}

// requests are sorted, for many objects are written at once.
func requests(xs []evidence.Exchange) string {
	var lines []string
	for _, x := range xs {
		if x.Actor != evidence.ByStep {
			continue
		}
		line := fmt.Sprintf("%s %s %d %s", x.Method, x.Path, x.Status, x.Reason)
		for _, c := range x.Causes {
			line += fmt.Sprintf(" [%s %s]", c.Field, c.Reason)
		}
		for _, w := range x.Warnings {
			line += fmt.Sprintf(" %q", w)
		}
		lines = append(lines, line+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// observed tells the CRD's flags, the record, the counts, and every object's content, stored version and managers.
func observed(b *strings.Builder, o *evidence.Observation) {
	fmt.Fprintf(b, "versions %+v strategy %s storedVersions %v stored %v\n", o.CRD.Versions, o.CRD.Strategy, o.CRD.StoredVersions, o.Stored.ByVersion)
	for _, x := range o.Objects {
		fmt.Fprintf(b, "%s stored %s %s managers %v\n", x.Name, x.StoredVersion(), spec(x.Stored.Value), managers(x))
		versions := make([]string, 0, len(x.Views))
		for v := range x.Views {
			versions = append(versions, v)
		}
		slices.Sort(versions)
		for _, v := range versions {
			fmt.Fprintf(b, "  %s %d %s\n", v, x.Views[v].Status, spec(x.Views[v].Object))
		}
	}
}

func spec(object json.RawMessage) string {
	var x struct {
		APIVersion string
		Spec       map[string]any
	}
	_ = json.Unmarshal(object, &x) // no object has no spec
	return fmt.Sprint(x.APIVersion, " ", x.Spec)
}

func managers(x *evidence.Object) []string {
	var out []string
	for _, m := range x.Managers {
		out = append(out, fmt.Sprintf("%s %s %s %s", m.Manager, m.Operation, m.APIVersion, m.Fields))
	}
	slices.Sort(out)
	return out
}
