package main

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
	kept "github.com/crdlab/crdlab/lab/progress"
	"github.com/crdlab/crdlab/lab/steps"
	"github.com/crdlab/crdlab/lab/views"
)

// keepTime is how long it may take to find out where the learner left: nobody waits for their file system.
const keepTime = 2 * time.Second

// keeper knows where the learner left each track, and keeps what they do in the lab. A nil one keeps nothing: nobody learns
// where the input is no terminal.
type keeper struct {
	folder  kept.Folder
	learner string
	before  map[string]*kept.Progress // by track
	lost    error                     // what could not be read

	mu     sync.Mutex
	unkept error // what could not be written
}

// keeper reads what is kept of the learner.
func (a *app) keeper(ctx context.Context) *keeper {
	if !isTerminal(a.in) {
		return nil
	}
	k := &keeper{learner: a.place.learner, before: map[string]*kept.Progress{}}
	if k.folder, k.lost = kept.Own(); k.lost != nil {
		return k
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	for _, t := range steps.Tracks() {
		p, err := k.folder.Load(ctx, a.place.learner, t.ID)
		if err != nil {
			k.lost = errors.Join(k.lost, err)
		} else if p != nil {
			k.before[t.ID] = p
		}
	}
	return k
}

// tellKept says in one line what of the learner's progress could not be read or written. It ends no lab.
func (a *app) tellKept(err error) {
	if err != nil {
		a.note("crdlab: %s", oneLine(err.Error()))
	}
}

// damaged says what could not be read.
func (k *keeper) damaged() error {
	if k == nil {
		return nil
	}
	return k.lost
}

// failed says what could not be written, unless damaged has said so already.
func (k *keeper) failed() error {
	if k == nil || k.lost != nil && !errors.Is(k.lost, kept.ErrDamaged) {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unkept
}

// left says how far the learner came in a track, which may have got other steps meanwhile.
func (k *keeper) left(t *lesson.Track) views.Left {
	if k == nil || k.before[t.ID] == nil {
		return views.Left{}
	}
	p := k.before[t.ID]
	out := views.Left{Done: p.Finished()}
	if _, middle := p.Left(); middle {
		out.Step = t.Step(p.At) + 1
	}
	out.Right, out.Given = p.Predicted()
	return out
}

// again reads once more where the learner left a track, of which a session has ended.
func (k *keeper) again(ctx context.Context, t *lesson.Track) views.Left {
	if k == nil || k.lost != nil {
		return views.Left{}
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	if p, err := k.folder.Load(ctx, k.learner, t.ID); err == nil && p != nil {
		k.before[t.ID] = p
	}
	return k.left(t)
}

// chosen is the track in whose middle the learner was last; empty where there is none.
func (k *keeper) chosen() string {
	var last *kept.Progress
	for _, t := range steps.Tracks() {
		if k.left(t).Step > 0 && (last == nil || k.before[t.ID].LastAt.After(last.LastAt)) {
			last = k.before[t.ID]
		}
	}
	if last == nil {
		return ""
	}
	return last.Track
}

// rebuild brings a session that has begun to where the learner left its track.
func (k *keeper) rebuild(ctx context.Context, s *lab.Session) error {
	p := k.before[s.State().Track.ID]
	return s.Rebuild(ctx, p.At, p.Given())
}

// session keeps what is done in a session from now on, until it is closed.
func (k *keeper) session(s *lab.Session) views.Session {
	if k == nil {
		return s
	}
	return &keptSession{s, kept.Record(s, k.folder, version()), k}
}

// keptSession is a session whose learner's progress is kept.
type keptSession struct {
	*lab.Session
	recorder *kept.Recorder
	keeper   *keeper
}

// Close writes what there is to be kept, and ends the session.
func (s *keptSession) Close(ctx context.Context) error {
	if err := s.recorder.Close(ctx); err != nil {
		s.keeper.mu.Lock()
		s.keeper.unkept = cmp.Or(s.keeper.unkept, err) // one is enough to know what to do
		s.keeper.mu.Unlock()
	}
	return s.Session.Close(ctx)
}
