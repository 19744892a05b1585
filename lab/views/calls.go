package views

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab"
)

// reader reads the states of a session and numbers the readings, so that one which arrives late does not hide a newer
// one.
type reader struct {
	session Session
	mu      sync.Mutex
	n       int
}

// reading is a state and its number.
type reading struct {
	reader *reader
	n      int
	state  *lab.State
}

func (r *reader) read() reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return reading{r, r.n, r.session.State()}
}

// shown shows a reading, unless it is of another session or older than what is shown.
func (m *program) shown(r reading) {
	if r.reader == m.reader && r.n > m.newest {
		m.newest = r.n
		m.show(r.state)
	}
}

// frameTime bounds how often a session's state is shown: a rewrite changes it a thousand times a second.
const frameTime = 33 * time.Millisecond

// follow waits for the next change, but not less than a pause, and brings the state after it.
func follow(ctx context.Context, r *reader, changed <-chan struct{}, pause time.Duration) tea.Cmd {
	return func() tea.Msg {
		rest := time.NewTimer(pause)
		defer rest.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		next := r.session.Changed() // before the state is read, so that no change is missed
		return stateMsg{r.read(), next}
	}
}

// run makes a call to the session that takes its time; esc cancels it.
func (m *program) run(name string, do func(context.Context) error) tea.Cmd {
	if m.call != nil || m.session == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	c := &call{name, cancel}
	m.call = c
	from := m.reader
	earlier, begun := m.queue()
	return func() tea.Msg {
		<-earlier
		close(begun)
		err := do(ctx)
		cancel()
		return calledMsg{from.read(), c, err}
	}
}

// quick makes a call that is soon done. It is a command all the same: a session may hold a lock.
func (m *program) quick(do func(Session) error) tea.Cmd {
	from := m.reader
	earlier, done := m.queue()
	return func() tea.Msg {
		<-earlier
		defer close(done)
		err := do(from.session)
		return calledMsg{from.read(), nil, err}
	}
}

// queue keeps calls in the order in which their keys were pressed, since commands run side by side: what is chosen must be
// known before it is applied. It returns what to wait for, and what to close when the next may begin.
func (m *program) queue() (earlier <-chan struct{}, done chan<- struct{}) {
	earlier = m.queued
	next := make(chan struct{})
	m.queued = next
	if earlier == nil {
		open := make(chan struct{})
		close(open)
		earlier = open
	}
	return earlier, next
}

// contextual binds the argument of a call.
func contextual(f func(context.Context, string) error, arg string) func(context.Context) error {
	return func(ctx context.Context) error { return f(ctx, arg) }
}

func (m *program) called(msg calledMsg) {
	if msg.call != nil && msg.call == m.call {
		m.call = nil
	}
	if msg.reader != m.reader { // of a session that was left meanwhile
		return
	}
	m.shown(msg.reading)
	m.benched(msg)
	switch {
	case msg.err == nil:
	case errors.Is(msg.err, context.Canceled):
		m.sight.notice = notice{text: "cancelled"}
	case msg.call != nil && m.state.Steps[m.state.Current].Err != nil: // the step itself says it
	default:
		m.sight.notice = notice{text: msg.err.Error(), bad: true}
	}
}

func (m *program) saved(msg savedMsg) {
	m.sight.notice = notice{text: msg.what + " → " + msg.path}
	if msg.err != nil {
		m.sight.notice = notice{text: msg.err.Error(), bad: true}
	}
	if n := len(m.dialogs); n > 0 && msg.err == nil {
		if d, ok := m.dialogs[n-1].(*byHand); ok {
			d.said, d.path = msg.what+" are in", msg.path
		}
	}
}

func (m *program) cancelCall() {
	if m.call != nil {
		m.call.cancel()
	}
}
