package views

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/lesson"
)

// fixedSession is a Session for tests of the screen and the keys: it shows a made-up state, notes what it is asked for,
// and stands for no API server.
type fixedSession struct {
	mu      sync.Mutex
	state   *lab.State
	changed chan struct{}
	asked   []string
	hold    chan struct{} // Apply waits for it, or for its context

	holdFault chan struct{} // SetFault does so
	lost      error         // what GoTo and Park answer
}

func (s *fixedSession) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
}

func (s *fixedSession) State() *lab.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *fixedSession) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// change replaces the state by what f makes of a copy.
func (s *fixedSession) change(f func(*lab.State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.state
	next.Steps = append([]*lab.Step(nil), next.Steps...)
	step := *next.Steps[next.Current]
	next.Steps[next.Current] = &step
	f(&next)
	s.state = &next
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

func (s *fixedSession) RewriteWith(with lesson.RewriteWith) error {
	s.note("rewrite with %s", with)
	s.change(func(st *lab.State) { st.RewriteWith = with })
	return nil
}

func (s *fixedSession) Predict(option string) error {
	s.note("predict %s", option)
	s.change(func(st *lab.State) { st.Steps[st.Current].Given = option })
	return nil
}

func (s *fixedSession) Apply(ctx context.Context) error {
	s.note("apply")
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			s.note("cancelled")
			return ctx.Err()
		}
	}
	s.change(func(st *lab.State) {
		step := st.Steps[st.Current]
		step.Phase, step.Result, step.After = lab.Applied, lesson.Passed, st.Live
		if len(step.Options) > 0 {
			step.Answer = step.Options[0].ID
		}
	})
	return nil
}

func (s *fixedSession) SetFault(ctx context.Context, id string) error {
	s.note("fault %q", id)
	if s.holdFault != nil {
		select {
		case <-s.holdFault:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fault, err := conversion.FaultByID(id)
	s.change(func(st *lab.State) { st.Fault = fault })
	return err
}

// Bench tells made-up cells of the faults that are named.
func (s *fixedSession) Bench(_ context.Context, faults []string, each func(bench.Cell)) error {
	s.note("bench %q", faults)
	for _, f := range faults {
		for _, c := range cells(f) {
			each(c)
		}
	}
	return nil
}

func (s *fixedSession) Next() bool {
	s.note("next")
	more := false
	s.change(func(st *lab.State) {
		if more = st.Current < len(st.Steps)-1; more {
			st.Current++
			step := *st.Steps[st.Current]
			step.Phase = lab.Ready
			st.Steps[st.Current] = &step
		}
	})
	return more
}

func (s *fixedSession) GoTo(_ context.Context, id string) error {
	s.note("go to %s", id)
	return s.lost
}
func (s *fixedSession) Reset(context.Context) error {
	s.note("reset")
	return errors.New("reset the cluster: no answer")
}
func (s *fixedSession) Park(context.Context) error    { s.note("park"); return s.lost }
func (s *fixedSession) Select(namespace, name string) { s.note("select %s/%s", namespace, name) }
func (s *fixedSession) Pause(yes bool)                { s.note("pause %t", yes) }
func (s *fixedSession) Rest(context.Context) error    { return nil }
func (s *fixedSession) Close(context.Context) error   { s.note("close"); return nil }
