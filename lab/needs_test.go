package lab_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps"
	"github.com/crdlab/crdlab/lab/storage"
)

// TestATrackIsOpenedOnlyWhereItCanBeTaken: what the embedded server lacks is found out from itself, said with the way on, and
// nothing is touched.
func TestATrackIsOpenedOnlyWhereItCanBeTaken(t *testing.T) {
	t.Parallel()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	can, err := lab.Look(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !can.Can(lesson.NeedsBytes) || !can.Can(lesson.NeedsRestore) || !can.Can(lesson.NeedsWebhook) || can.Can(lesson.NeedsMigration) {
		t.Errorf("bytes and webhooks, and no StorageVersionMigration, were to be found: %+v", can)
	}
	for _, track := range steps.Tracks() {
		why := can.Unavailable(track)
		if (why != "") != (labtest.NotOnEmbedded[track.ID] != "") {
			t.Errorf("%s: %q, and the list of what it cannot carry says %q", track.ID, why, labtest.NotOnEmbedded[track.ID])
		}
		if why == "" {
			continue
		}
		s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: c})
		if err == nil {
			s.Close(t.Context())
			t.Fatalf("%s was opened, and %s", track.ID, why)
		}
		if !strings.Contains(err.Error(), string(lesson.NeedsMigration)) || !strings.Contains(err.Error(), "--cluster kind") {
			t.Errorf("%s: the error does not say what is lacking and what to do: %v", track.ID, err)
		}
	}
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r, err := client.Get(t.Context(), evidence.DefinitionPath(storage.Resource{Group: lab.DefaultGroup, Plural: "widgets"}), nil)
	if err != nil || r.Status != http.StatusNotFound {
		t.Errorf("something was made: %v %v", r, err)
	}
}

// TestTheRewriterIsChosenWhereThereIsAChoice: a server without StorageVersionMigration is told so at once, and later.
func TestTheRewriterIsChosenWhereThereIsAChoice(t *testing.T) {
	t.Parallel()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	track, err := steps.Find("migrate")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: c, RewriteWith: lesson.WithMigration}); err == nil {
		s.Close(t.Context())
		t.Fatal("it was opened")
	} else if !strings.Contains(err.Error(), "--rewrite-with") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error does not say in a line what to do: %v", err)
	}
	s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if err := s.RewriteWith(lesson.WithMigration); err == nil {
		t.Error("it was chosen at a step that rewrites nothing")
	}
	if err := s.GoTo(t.Context(), "rewrite"); err != nil {
		t.Fatal(err)
	}
	if err := s.RewriteWith(lesson.WithMigration); err == nil || !strings.Contains(err.Error(), "StorageVersionMigration") {
		t.Errorf("it was chosen where it is not offered: %v", err)
	}
	if err := s.RewriteWith(lesson.WithPatch); err != nil {
		t.Error(err)
	}
	now := s.State()
	if step := now.Steps[now.Current]; now.Migrates || now.RewriteWith != lesson.WithPatch || !slices.ContainsFunc(step.Change, func(l string) bool { return strings.Contains(l, "merge patch") }) {
		t.Errorf("migrates: %v, with %s, change %q", now.Migrates, now.RewriteWith, step.Change)
	}
}
