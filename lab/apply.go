package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// errInterrupted is for people; what Apply returns has the context's own error in it.
var errInterrupted = errors.New("interrupted: what was done so far stands; apply the step again, and it goes on from there")

// afterFailure is how long an observation is waited for after an action that failed.
const afterFailure = 2 * time.Second

// Apply does the current step: its actions, one after the other, then waits until its checks hold or nothing more can
// come, and judges. An error says that the step could not be brought to its end; that it was judged to have failed is in
// the state, not in the error.
func (s *Session) Apply(ctx context.Context) error {
	s.working.Lock()
	defer s.working.Unlock()
	asked := ctx
	ctx, cancel := s.alive(ctx)
	defer cancel()
	began := time.Now()
	s.mu.Lock()
	if s.halted != nil {
		s.mu.Unlock()
		return fmt.Errorf("nobody follows the cluster any more, reset again: %w", s.halted)
	}
	i := s.state.Current
	step := *s.state.Steps[i]
	if step.Phase == Applied && step.Result != lesson.Failed {
		s.mu.Unlock()
		return fmt.Errorf("step %s is done already", step.ID)
	}
	env, observer := s.env(), s.observer
	step.Phase, step.ByHand, step.Err, step.Hints, step.Attempt = Running, false, nil, nil, s.log.Seq()
	step.Rebuilt = s.state.Rebuilding != ""
	step.Conversions = nil
	step.Observations = []*evidence.Observation{at(step.Before, "before")}
	s.state.Steps[i] = &step
	s.state.Doing = "applying " + step.Title
	s.publish()
	s.mu.Unlock()
	defer s.doing("")

	failure := s.act(ctx, i, env, observer)
	var after *evidence.Observation
	var err error
	switch {
	case unanswered(failure): // nothing can be judged of a cluster that does not answer
		err = failure
	case ctx.Err() == nil:
		if failure == nil {
			failure = s.judge(ctx, &step, env)
		}
		after, err = s.settled(ctx, i, observer)
	}
	switch {
	case asked.Err() != nil:
		s.interrupted(i, errInterrupted)
		return fmt.Errorf("step %s was interrupted: %w", step.ID, context.Cause(asked))
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && failure != nil:
		err = failure // it came first
	}
	err = advise(err, nil)
	if err != nil {
		s.interrupted(i, err)
		return fmt.Errorf("step %s: %w", step.ID, err)
	}
	s.update(i, func(step *Step) {
		step.Err = failure
		s.conclude(step, after, time.Since(began))
	})
	return nil
}

// act does the actions. The first that goes otherwise than the lesson wants ends it.
func (s *Session) act(ctx context.Context, i int, env *lesson.Env, observer *evidence.Observer) error {
	for k, a := range s.opts.Track.Steps[i].Actions {
		from, fault := s.log.Seq(), s.fault()
		s.mu.Lock()
		s.kept = append(s.kept, &kept{action: a.ID, seq: from})
		s.mu.Unlock()
		conversions, reviews, err := s.counting(ctx, a, observer, func() error { return a.Do(ctx, env) })
		if ctx.Err() == nil && remedy(err) == "" {
			err = errors.Join(err, a.Expect.Met(s.log.Since(from)))
		}
		if err != nil && ctx.Err() == nil {
			err = advise(err, s.log.Since(from))
		}
		if s.fault() != fault {
			observer.Reread()
		}
		seen, syncErr := s.seen(ctx, observer, err)
		s.update(i, func(step *Step) {
			step.Rewrite, step.Verdict = env.Rewrite, env.Verdict
			s.supersede()
			step.Exchanges = s.exchanges()
			actions := append([]Action{}, step.Actions...)
			actions[k].Done = err == nil
			actions[k].Counted, actions[k].Reviews = a.Count, reviews
			step.Conversions = append(step.Conversions[:len(step.Conversions):len(step.Conversions)], conversions...)
			s.state.Fault = s.fault()
			actions[k].from, actions[k].to = from, s.log.Seq()
			for j := range actions[:k+1] {
				actions[j].find(step.Exchanges)
			}
			step.Actions = actions
			if seen != nil {
				step.Observations = append(step.Observations, at(seen, a.ID))
			}
			s.state.Progress = nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", a.ID, err)
		}
		if syncErr != nil {
			return syncErr
		}
	}
	return nil
}

// judge asks for the verdict, where a step is proven by one.
func (s *Session) judge(ctx context.Context, step *Step, env *lesson.Env) error {
	if step.Lesson.Judge == nil {
		return nil
	}
	if err := step.Lesson.Judge(ctx, env); err != nil {
		return fmt.Errorf("ask for the verdict: %w", err)
	}
	s.update(step.Index, func(step *Step) { step.Verdict = env.Verdict })
	return nil
}

// seen is what was observed once an action is done. After one that failed, the server may have no more answers to give.
func (s *Session) seen(ctx context.Context, observer *evidence.Observer, failure error) (*evidence.Observation, error) {
	if failure != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, afterFailure)
		defer cancel()
	}
	return observer.Sync(ctx)
}

// settled waits until the step's checks hold, or the observer is at rest and they still do not: then nothing more will
// come.
func (s *Session) settled(ctx context.Context, i int, observer *evidence.Observer) (*evidence.Observation, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rest := make(chan error, 1)
	go func() { // ends with the observer's rest, or the context
		_, err := observer.Rest(ctx)
		rest <- err
	}()
	atRest := false
	for {
		changed := observer.Changed()
		live, err := observer.Sync(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		step := *s.state.Steps[i]
		step.Exchanges = s.exchanges()
		done := s.holds(&step, s.evidence(&step, live), lesson.Done)
		s.mu.Unlock()
		if done || atRest {
			return live, nil
		}
		select {
		case <-changed:
		case err := <-rest:
			if err != nil {
				return nil, err
			}
			atRest = true
		}
	}
}

// holds says whether all checks of a kind hold, as far as they can be made.
func (s *Session) holds(step *Step, e lesson.Evidence, kind lesson.CheckKind) bool {
	for _, c := range step.Lesson.Checks {
		if c.Kind == kind && c.Evaluate(e).Result == lesson.Failed {
			return false
		}
	}
	return true
}

// conclude judges a step by one observation; the lock is held.
func (s *Session) conclude(step *Step, after *evidence.Observation, took time.Duration) {
	step.After, step.Took = after, took
	step.Exchanges = s.exchanges()
	s.concluded = s.log.Seq()
	step.Observations = append(step.Observations, at(after, "settled"))
	e := s.evidence(step, after)
	step.Result = lesson.Passed
	step.Checks = nil
	skipped := false
	p := s.prose[step.Index]
	for _, c := range step.Lesson.Checks {
		check := Check{ID: c.ID, Outcome: c.Evaluate(e)}
		var err error
		if check.Title, err = p.Render(s.opts.Track, "check:"+c.ID, e); err != nil {
			check.Title = c.ID // the evidence that it speaks of is not there
		}
		if err != nil && check.Result == lesson.Passed {
			step.Err = errors.Join(step.Err, err)
		}
		step.Checks = append(step.Checks, check)
		if check.Result == lesson.Failed {
			step.Result = lesson.Failed
		}
		skipped = skipped || check.Result == lesson.Skipped
	}
	if step.Result != lesson.Failed && step.Err == nil {
		s.explain(step, e)
	}
	step.Hints = nil
	switch {
	case step.Err != nil:
		step.Result = lesson.Failed
	case step.Result == lesson.Passed && skipped:
		step.Result = lesson.Skipped
	}
	if step.Result == lesson.Failed {
		step.Hints = s.hints(step, e)
	}
	step.Phase = Applied
}

// explain answers the question and says why, by the evidence.
func (s *Session) explain(step *Step, e lesson.Evidence) {
	var err error
	if step.Lesson.Predict != nil {
		if step.Answer, err = step.Lesson.Predict.Answer(e); err != nil {
			step.Err = errors.Join(step.Err, fmt.Errorf("the question cannot be answered: %w", err))
		}
	}
	if step.Explanation, err = s.prose[step.Index].Render(s.opts.Track, "explanation", e); err != nil {
		step.Err = errors.Join(step.Err, err)
	}
}

// interrupted brings a step back to the learner's turn, with what stands in the way.
func (s *Session) interrupted(i int, why error) {
	s.update(i, func(step *Step) {
		step.Phase, step.Err = Ready, why
		s.state.Progress = nil
	})
}

// at returns an observation under the name that a report gives it.
func at(o *evidence.Observation, after string) *evidence.Observation {
	if o == nil {
		return nil
	}
	named := *o
	named.After = after
	return &named
}

// Run applies the steps in order, up to and with the one named, or all where until is empty. Each is called after every
// step. It ends early at a step that failed.
func Run(ctx context.Context, s *Session, until string, each func(*Step)) error {
	for {
		if err := s.Apply(ctx); err != nil {
			return err
		}
		now := s.State()
		step := now.Steps[now.Current]
		each(step)
		if step.ID == until || !s.Next() {
			return nil
		}
	}
}

// Result is how the run went: failed where a step failed, unknown where a check that was needed was skipped, else
// passed, as far as it went.
func (s *State) Result() lesson.Result {
	result := lesson.Passed
	for _, step := range s.Steps {
		if step.Phase != Applied {
			continue
		}
		switch step.Result {
		case lesson.Failed:
			return lesson.Failed
		case lesson.Skipped:
			result = lesson.Unknown
		}
	}
	return result
}
