package labtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Again, as a command, is the key g: the lab resets its cluster and comes back to the step.
const Again = "g"

// Shown, as a command, are those that the lab shows for the step, by K.
const Shown = "K"

// Typed is a command that somebody types in a shell, and the id of the wrong state that the lab is to recognise then; empty
// where it need not say anything. The server may refuse it, and so may kubectl.
type Typed struct{ Command, Wrong string }

// Mistake is a wrong state at a step: the commands that lead into it, and those of the way on that the lab names.
type Mistake struct {
	Step  string
	Wrong string // its id
	Do    []string
	WayOn []string
}

// typist works by hand on a session's cluster.
type typist struct {
	*testing.T
	session *lab.Session
	run     func(string) (string, error)
	track   *lesson.Track
}

func newTypist(t *testing.T, track *lesson.Track) *typist {
	t.Helper()
	s := Start(t, track)
	return &typist{t, s, shell(t, s), track}
}

// typed runs a command.
func (t *typist) typed(command string) {
	t.Helper()
	switch now := t.step(); command {
	case Again:
		if err := t.session.GoTo(t.Context(), now.ID); err != nil {
			t.Fatal(err)
		}
		return
	case Shown:
		for _, a := range now.Actions {
			for _, c := range a.Kubectl {
				t.typed(c)
			}
		}
		return
	}
	out, err := t.run(command)
	t.Logf("$ %s\n%.600s%v", command, out, err)
}

func (t *typist) step() *lab.Step {
	state := t.session.State()
	return state.Steps[state.Current]
}

// until waits for a state of the session.
func (t *typist) until(what string, accept func(*lab.State, *lab.Step) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lesson.Timeout)
	defer cancel()
	for {
		changed := t.session.Changed()
		state := t.session.State()
		step := state.Steps[state.Current]
		if accept(state, step) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			for _, c := range step.Lesson.Checks {
				t.Logf("%s: %+v", c.ID, c.Evaluate(Seen(state, step, state.Live)))
			}
			t.Fatalf("at %s, %s: waited in vain until %s; it says %q, undone: %v", step.ID, step.Result, what, step.Hints, state.Undone)
		}
	}
}

// says waits until the lab says what belongs to a wrong state, and nothing else.
func (t *typist) says(id string) {
	t.Helper()
	t.until("it says wrong:"+id, func(state *lab.State, step *lab.Step) bool {
		if step.Phase == lab.Running || len(step.Hints) != 1 {
			return false
		}
		text, err := t.wrong(step, id, Seen(state, step, state.Live))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "<no value>") {
			t.Errorf("%s: %s", id, text)
		}
		return step.Hints[0] == text
	})
	t.Logf("▲ %s", t.step().Hints[0])
}

// wrong is what a diagnosis of a step says.
func (t *typist) wrong(step *lab.Step, id string, e lesson.Evidence) (string, error) {
	all := t.track.Wrongs(step.Index)
	i := slices.IndexFunc(all, func(d lesson.Diagnosis) bool { return d.ID == id })
	if i < 0 {
		t.Fatalf("%s knows no wrong state %q", step.ID, id)
	}
	var from []*lesson.Prose
	for _, of := range []string{step.ID, "track"} {
		p, err := t.track.ReadProse(of)
		if err != nil {
			t.Fatal(err)
		}
		from = append(from, p)
	}
	return all[i].Say(t.track, e, from...)
}

// silent waits until the lab does not say any more what belongs to a wrong state.
func (t *typist) silent(id, said string) {
	t.Helper()
	t.until("it does not say wrong:"+id+" any more", func(_ *lab.State, step *lab.Step) bool { return !slices.Contains(step.Hints, said) })
}

// Mistakes gets into every wrong state by real commands, sees that the lab recognises it, and goes the way on that it names:
// then the lab does not speak of it any more, and in the end the step passes. Those that need the step to begin again
// come first, so that what ends the others ends them.
func Mistakes(t *testing.T, track func() *lesson.Track, all []Mistake) {
	t.Helper()
	for _, step := range track().Steps {
		var here []Mistake
		for _, m := range all {
			if m.Step == step.ID {
				here = append(here, m)
			}
		}
		if len(here) == 0 {
			continue
		}
		slices.SortStableFunc(here, func(a, b Mistake) int {
			return rank(a) - rank(b)
		})
		t.Run(step.ID, func(t *testing.T) {
			t.Parallel()
			p := newTypist(t, track())
			if err := p.session.GoTo(t.Context(), step.ID); err != nil {
				t.Fatal(err)
			}
			for _, m := range here {
				for _, c := range m.Do {
					p.typed(c)
				}
				p.says(m.Wrong)
				said := p.step().Hints[0]
				for _, c := range m.WayOn {
					p.typed(c)
				}
				p.silent(m.Wrong, said)
			}
			if p.step().Phase != lab.Applied {
				if err := p.session.Apply(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if now := p.step(); now.Result != lesson.Passed {
				t.Errorf("after all of that the step %s: %v, it says %q, %+v", now.Result, now.Err, now.Hints, now.Checks)
			}
		})
	}
}

func rank(m Mistake) int {
	if slices.Contains(m.WayOn, Again) {
		return 0
	}
	return 1
}

// FromMemory goes through a track by typed commands, by step; a step without any is applied. Each step must complete by the
// last of its commands, and the track pass.
func FromMemory(t *testing.T, track *lesson.Track, script map[string][]Typed) *lab.State {
	t.Helper()
	p := newTypist(t, track)
	for {
		step := p.step()
		for _, c := range script[step.ID] {
			p.typed(c.Command)
			if c.Wrong != "" {
				p.says(c.Wrong)
			}
		}
		if len(script[step.ID]) == 0 {
			if err := p.session.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.until("the step is done", func(_ *lab.State, step *lab.Step) bool { return step.Phase == lab.Applied })
		if step = p.step(); step.Result != lesson.Passed {
			t.Fatalf("%s %s: %v, it says %q, %+v", step.ID, step.Result, step.Err, step.Hints, step.Checks)
		}
		if !p.session.Next() {
			return p.session.State()
		}
	}
}
