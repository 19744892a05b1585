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
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps"
)

// TestEveryTrackShowsTheSameOnBothClusters runs every track on the embedded server and on kind, and compares what each step
// asked, what it was answered, what it proved, and what was there at its end. Nothing differs in what is taught so far: a
// difference that has a reason is to be listed here with it.
func TestEveryTrackShowsTheSameOnBothClusters(t *testing.T) {
	onKind := theCluster(t)
	server, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(context.Background())
	for _, track := range steps.Tracks() {
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
		fmt.Fprintf(&b, "%s, answer %s\n", step.Result, step.Answer)
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
