package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

// shown is how many exchanges a State carries.
const shown = 200

// follow brings what the observer sees and what the log gains into the state, and completes a step that somebody does
// by hand.
func (s *Session) follow(ctx context.Context, client *evidence.Client, observer *evidence.Observer) {
	ended := s.ended()
	for {
		moved, grown, reviewed := observer.Changed(), s.log.Grown(), s.reviewed()
		waiting, waited := client.Waiting()
		s.waiting(waiting)
		if s.look(observer) {
			s.byHand(ctx, observer)
		}
		select {
		case <-moved:
		case <-grown:
		case <-reviewed:
		case <-waited:
		case <-s.turned: // the step may have been done already
		case <-ended: // nothing comes any more, until a reset
			s.trouble(s.gone())
			return
		case <-ctx.Done():
			return
		}
	}
}

// ended is closed when the cluster has ended by itself; nil where it cannot.
func (s *Session) ended() <-chan struct{} {
	if w, can := s.opts.Cluster.(cluster.Watchdog); can {
		return w.Ended()
	}
	return nil
}

// gone says why the cluster has ended by itself.
func (s *Session) gone() error { return s.opts.Cluster.(cluster.Watchdog).Err() }

// alive is a context that ends when the cluster does.
func (s *Session) alive(ctx context.Context) (context.Context, context.CancelFunc) {
	ended := s.ended()
	if ended == nil {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // ends with the context, which its owner ends
		select {
		case <-ended:
			cancel(s.gone())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// look takes over what is new, and says whether somebody else may have acted while it is the learner's turn.
func (s *Session) look(observer *evidence.Observer) bool {
	live, trouble := observer.Latest()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Live, s.state.Trouble = live, nil
	if trouble != nil {
		s.state.Trouble = fmt.Errorf("%w (the lab keeps asking)", advise(trouble, nil))
	}
	s.state.Log = s.newest()
	s.state.Conversions = s.conversions(max(0, s.reviews()-shown), shown)
	s.exchanges() // what the log forgets is kept for the step
	s.state.Undone = s.undone(live)
	s.publish()
	now := s.state.Steps[s.state.Current]
	return now.Open() && !sameCluster(now.Before, live) || s.byOthers(now)
}

// byOthers says whether somebody else has sent requests since it became the learner's turn.
func (s *Session) byOthers(step *Step) bool {
	return step.Open() && slices.ContainsFunc(s.exchanges(), func(x evidence.Exchange) bool { return x.Actor == evidence.ByHand })
}

// newest are the last exchanges that a reader is to see.
func (s *Session) newest() []evidence.Exchange {
	out := visible(s.log.Since(max(0, s.log.Seq()-2*shown)))
	return out[max(0, len(out)-shown):]
}

// undone names the steps whose effect does not stand any more.
func (s *Session) undone(live *evidence.Observation) []string {
	var out []string
	for _, step := range s.state.Steps {
		passed := step.Phase == Applied && step.Result == lesson.Passed
		if passed && step.Lesson.Lasts != nil && !step.Lesson.Lasts(live) {
			out = append(out, step.ID)
		}
	}
	return out
}

// byHand looks whether somebody else has done the current step, and if not, what is wrong with what they did. It judges by
// an observation in which all is in that they have done so far.
func (s *Session) byHand(ctx context.Context, observer *evidence.Observer) {
	live, err := observer.Sync(ctx)
	if err != nil {
		return // the trouble is in the state already
	}
	said := s.judgedByHand(ctx, live)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state.Steps[s.state.Current]
	if !now.Open() || len(now.Lesson.Checks) == 0 {
		return
	}
	step := s.handled(now)
	step.Verdict = said
	e := s.evidence(step, live)
	switch {
	case s.holds(step, e, lesson.Done):
		step.ByHand, step.Rebuilt, step.Err = true, s.state.Rebuilding != "", nil
		step.Observations = []*evidence.Observation{at(step.Before, "before")}
		s.conclude(step, live, time.Since(step.Before.At))
	case step.Phase == Applied: // it failed: what is seen now may be for another reason
		step.Observations = []*evidence.Observation{at(step.Before, "before")}
		s.conclude(step, live, step.Took)
	default:
		step.Hints = s.hints(step, e)
	}
	s.state.Steps[now.Index] = step
	s.publish()
}

// handled is a copy of an open step, with what has been asked since it became the learner's turn; the lock is held.
func (s *Session) handled(now *Step) *Step {
	step := *now
	step.Exchanges = s.exchanges()
	if now.Phase == Ready {
		step.Conversions = s.conversions(step.Reviewed, keptReviews)
	}
	return &step
}

// judgedByHand asks for the verdict that the current step is proven by, once nothing else is missing; nil before.
func (s *Session) judgedByHand(ctx context.Context, live *evidence.Observation) *verdict.Verdict {
	s.mu.Lock()
	now := s.state.Steps[s.state.Current]
	asks := now.Open() && now.Lesson.Judge != nil
	if asks {
		step := s.handled(now)
		step.Verdict = &verdict.Verdict{Verdict: verdict.Complete} // as if
		asks = s.holds(step, s.evidence(step, live), lesson.Done)
	}
	env := s.env()
	s.mu.Unlock()
	if !asks || now.Lesson.Judge(ctx, env) != nil { // what cannot be asked for now is asked for at the next change
		return nil
	}
	return env.Verdict
}

// sameCluster says that two observations show the same CRD and the same objects.
func sameCluster(a, b *evidence.Observation) bool {
	if (a.CRD == nil) != (b.CRD == nil) || len(a.Objects) != len(b.Objects) || a.Stored.Total != b.Stored.Total {
		return false
	}
	if a.CRD != nil && (a.CRD.ResourceVersion != b.CRD.ResourceVersion || a.CRD.UID != b.CRD.UID) {
		return false
	}
	for i := range a.Objects {
		if a.Objects[i].Name != b.Objects[i].Name || a.Objects[i].ResourceVersion != b.Objects[i].ResourceVersion {
			return false
		}
	}
	return true
}

// hints are what the lesson says to the wrong state that is seen, the first of its diagnoses: more than one way on would be no
// way on.
func (s *Session) hints(step *Step, e lesson.Evidence) []string {
	for _, w := range s.opts.Track.Wrongs(step.Index) {
		if !w.Seen(e) {
			continue
		}
		text, err := w.Say(s.opts.Track, e, s.prose[step.Index], s.common)
		if err != nil {
			text = w.ID // the evidence that it speaks of is not there
		}
		return []string{text}
	}
	return nil
}

// followHands records what others ask of the API server, where the cluster can tell.
func (s *Session) followHands(ctx context.Context) {
	w, can := s.opts.Cluster.(cluster.RequestWatcher)
	if !can {
		return
	}
	s.followed.Go(func() {
		for ctx.Err() == nil {
			requests, err := w.WatchRequests(ctx)
			if err == nil {
				for r := range requests {
					s.log.Add(evidence.FromRequest(r))
				}
			}
			select { // the server is gone, or not there yet
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}
