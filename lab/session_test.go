package lab_test

import (
	"context"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

func open(t *testing.T, o lab.Options) *lab.Session {
	t.Helper()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	if o.Track == nil {
		o.Track = migrate.Track()
	}
	o.Cluster = c
	s, err := lab.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

func TestTheWholeTrackPasses(t *testing.T) {
	s := open(t, lab.Options{})
	err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		t.Logf("%s: %s in %s, answer %s", step.ID, step.Result, step.Took, step.Answer)
		for _, c := range step.Checks {
			t.Logf("   %s %s: want %q, got %q: %s", c.Result, c.ID, c.Want, c.Got, c.Title)
		}
		if step.Err != nil {
			t.Errorf("%s: %v", step.ID, step.Err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.State().Result(); r != lesson.Passed {
		t.Errorf("the run %s", r)
	}
}
