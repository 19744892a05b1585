package progress

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Longest is how much of the time for which a step waits, without a break, is taken for the learner's: who left for lunch,
// or closed the lid of the machine, has not thought about it all the while.
const Longest = 15 * time.Minute

// patience is how long another crdlab may hold the lock. What cannot be written then is written with what comes next.
const patience = 2 * time.Second

// Session is what a Recorder follows: a lab.Session.
type Session interface {
	State() *lab.State
	Changed() <-chan struct{}
}

// Recorder keeps what a learner does in a session. It reads the session's states, and asks nothing of it.
type Recorder struct {
	session Session
	folder  Folder
	crdlab  string
	clock   func() time.Time

	stop   context.CancelFunc
	ended  sync.WaitGroup
	judged map[string]try    // the try of each step that was counted last
	at     string            // the step that is to be done next
	turn   turn              // the learner's
	notes  []func(*Progress) // what is to be written
	due    bool              // they are not to wait for more
	err    error             // why they could not be written
	aside  error             // something that was there before is damaged
}

// try tells the tries of a step from one another.
type try struct {
	attempt int
	byHand  bool
}

// turn is a step that waits for the learner, and since when.
type turn struct {
	step  string
	since time.Time
}

// Record begins to keep what is done in a session, for a crdlab of some version. It is ended by Close.
func Record(s Session, f Folder, crdlab string) *Recorder {
	r := newRecorder(s, f, crdlab)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.ended.Go(func() { r.follow(ctx) })
	return r
}

func newRecorder(s Session, f Folder, crdlab string) *Recorder {
	return &Recorder{session: s, folder: f, crdlab: crdlab, clock: time.Now, judged: map[string]try{}}
}

func (r *Recorder) follow(ctx context.Context) {
	for {
		changed := r.session.Changed() // before the state is read, so that no change is missed
		st := r.session.State()
		r.see(st)
		if r.due {
			r.write(ctx, st)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Close writes what there is still to be written. The error says what could not be kept, and what to do.
func (r *Recorder) Close(ctx context.Context) error {
	r.stop()
	r.ended.Wait()
	st := r.session.State()
	r.see(st)
	r.pass(r.clock())
	r.write(ctx, st)
	return errors.Join(r.aside, r.err)
}

// see notes what has happened since the last state.
func (r *Recorder) see(st *lab.State) {
	now := r.clock()
	current := st.Steps[st.Current]
	idle := st.Doing == "" && st.Rebuilding == ""
	waits := idle && current.Open()
	if !waits || r.turn.step != current.ID {
		r.pass(now)
	}
	if waits && r.turn.step == "" {
		r.turn = turn{current.ID, now}
	}
	for _, step := range st.Steps {
		r.judge(step, now)
	}
	if at := next(st); idle && at != r.at {
		r.at = at
		r.note(true, func(p *Progress) { p.At = at })
	}
}

// pass ends the learner's turn.
func (r *Recorder) pass(now time.Time) {
	id, spent := r.turn.step, min(now.Sub(r.turn.since), Longest)
	r.turn = turn{}
	if id != "" && spent > 0 {
		r.note(false, func(p *Progress) { p.Steps[p.index(id)].SpentMS += spent.Milliseconds() })
	}
}

// judge counts a try that has come to its result.
func (r *Recorder) judge(step *lab.Step, now time.Time) {
	this := try{step.Attempt, step.ByHand}
	last, counted := r.judged[step.ID]
	switch {
	case step.Phase == lab.Coming, step.Phase == lab.Ready: // or so again, after a reset
		delete(r.judged, step.ID)
	case step.Phase == lab.Applied && !step.Rebuilt && (!counted || last != this):
		r.judged[step.ID] = this
		r.note(true, func(p *Progress) { p.Steps[p.index(step.ID)].tried(step, now) })
	}
}

// tried adds a try that has come to its result.
func (s *Step) tried(step *lab.Step, now time.Time) {
	s.Tries++
	if s.Prediction == nil && step.Answer != "" {
		s.Prediction = &Prediction{Given: step.Given, Right: step.Right()}
	}
	if s.Done() {
		return // that it failed at a later time does not undo that
	}
	s.Result = step.Result
	if s.Result == lesson.Skipped { // it was applied, and a check was skipped
		s.Result = lesson.Unknown
	}
	if s.Done() {
		s.ByHand, s.FinishedAt = step.ByHand, now.UTC().Truncate(time.Second)
	}
}

// next is the step that is to be done next; the last one where none is left.
func next(st *lab.State) string {
	at := st.Current
	if !st.Steps[at].Open() && at < len(st.Steps)-1 {
		at++
	}
	return st.Steps[at].ID
}

func (r *Recorder) note(due bool, change func(*Progress)) {
	r.notes, r.due = append(r.notes, change), r.due || due
}

// write brings the notes into the file. Where that fails, they are kept for the next time.
func (r *Recorder) write(ctx context.Context, st *lab.State) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.err = r.folder.Update(ctx, st.Learner, st.Track.ID, func(p *Progress) {
		p.of(st)
		p.Crdlab, p.LastAt = r.crdlab, r.clock().UTC().Truncate(time.Second)
		for _, change := range r.notes {
			change(p)
		}
	})
	if errors.Is(r.err, ErrDamaged) {
		r.aside, r.err = r.err, nil
	}
	r.due = false
	if r.err == nil {
		r.notes = nil
	}
}
