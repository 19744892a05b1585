// Package labtest holds what every track must hold: no action can be left out, no check passes on evidence that was altered,
// and the commands that a learner is shown do the same as the lab. Tests of the tracks call it.
package labtest

import (
	"context"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Start opens a session of a track on a server of its own.
func Start(t *testing.T, track *lesson.Track) *lab.Session {
	t.Helper()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	s, err := lab.Open(t.Context(), lab.Options{Track: track, Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// EveryActionIsNeeded leaves out one action at a time: its step must fail, and by one of its checks.
func EveryActionIsNeeded(t *testing.T, track func() *lesson.Track) {
	t.Helper()
	for i, step := range track().Steps {
		for k, action := range step.Actions {
			t.Run(step.ID+"/"+action.ID, func(t *testing.T) {
				t.Parallel()
				altered := track()
				altered.Steps[i].Actions[k].Do = func(context.Context, *lesson.Env) error { return nil }
				s := Start(t, altered)
				if err := lab.Run(t.Context(), s, step.ID, func(*lab.Step) {}); err != nil {
					t.Fatal(err)
				}
				state := s.State()
				got := state.Steps[state.Current]
				if got.ID != step.ID {
					t.Fatalf("the run ended at %s: %v", got.ID, got.Err)
				}
				if got.Result != lesson.Failed {
					t.Fatalf("without %s the step %s", action.ID, got.Result)
				}
				for _, c := range got.Checks {
					if c.Result == lesson.Failed {
						t.Logf("%s: wanted %q, got %q", c.ID, c.Want, c.Got)
						return
					}
				}
				t.Errorf("no check noticed it; the step's error: %v", got.Err)
			})
		}
	}
}

// EveryActionMayBeDoneTwice does every action twice, one after the other: the track must pass all the same.
func EveryActionMayBeDoneTwice(t *testing.T, track *lesson.Track) {
	t.Helper()
	for i := range track.Steps {
		for k, action := range track.Steps[i].Actions {
			if action.Expect.Refused {
				continue // what is refused changes nothing
			}
			track.Steps[i].Actions[k].Do = func(ctx context.Context, env *lesson.Env) error {
				if err := action.Do(ctx, env); err != nil {
					return err
				}
				return action.Do(ctx, env)
			}
		}
	}
	s := Start(t, track)
	if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		if step.Result != lesson.Passed {
			t.Errorf("%s %s: %v %+v", step.ID, step.Result, step.Err, step.Checks)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
