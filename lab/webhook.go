package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

const (
	// keptReviews is how many conversions of a step are kept, the last ones; the numbers are of all.
	keptReviews = 100
	// quietFor is how long the webhook must not have been asked for it to be quiet: what an operation causes beside its
	// answer, such as the conversion of an event for the watch cache, comes a few milliseconds after it.
	quietFor = 150 * time.Millisecond
	// quietWithin is how long it may take until it is quiet. After a change of the CRD every watch of it ends about a second
	// later, and begins again.
	quietWithin = 10 * time.Second
	// detachTimeout is how long the CRD may take to be put right at the end.
	detachTimeout = 5 * time.Second
)

// serveWebhook begins to answer the API server's conversions, where the track has a webhook. A reset does not end it.
func (s *Session) serveWebhook(ctx context.Context) error {
	if s.opts.Track.Mappings == nil {
		return nil
	}
	if s.webhook != nil {
		return errors.Join(s.webhook.Deploy(s.opts.Track.Mappings), s.webhook.SetFault(conversion.Fault{}))
	}
	listener, err := s.opts.Cluster.ListenWebhook(ctx)
	if err != nil {
		return fmt.Errorf("listen for conversions: %w", err)
	}
	server, err := conversion.Serve(context.WithoutCancel(ctx), listener, conversion.Options{
		Groups: []string{s.state.Resource.Group}, Mappings: s.opts.Track.Mappings,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("serve the conversion webhook: %w", err), listener.Close())
	}
	s.webhook = server
	if !s.opts.Outlives {
		return s.announce()
	}
	path, _ := s.opts.Cluster.Kubeconfig()
	if s.guard, err = conversion.StandGuard(server, path, s.state.Resource); err != nil {
		return err
	}
	return s.announce()
}

// endWebhook puts the CRD right, so that nobody needs the webhook, and ends it.
func (s *Session) endWebhook(ctx context.Context) error {
	if s.webhook == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachTimeout)
	defer cancel()
	ctx, alive := s.alive(ctx)
	defer alive()
	_, err := conversion.Detach(ctx, s.client, s.state.Resource)
	select {
	case <-s.ended(): // the CRD has ended with its server
		err = nil
	default:
	}
	if err != nil && s.guard != nil {
		s.guard.Leave()
		s.guard = nil
		err = fmt.Errorf("%w; a process that stays behind tries for another minute: until then, reads of %s at other versions than the stored one fail", err, s.state.Resource)
	} else if err != nil {
		err = fmt.Errorf("%w; reads of %s at other versions than the stored one fail now: crdlab reset, with the flags that name this cluster, removes it", err, s.state.Resource)
	}
	return errors.Join(err, s.releaseWebhook())
}

// releaseWebhook ends the webhook and what belongs to it; no CRD depends on it.
func (s *Session) releaseWebhook() error {
	if s.webhook == nil {
		return nil
	}
	var err error
	if s.guard != nil {
		err = s.guard.Release()
	}
	return errors.Join(err, s.webhook.Close(), s.withdraw())
}

// SetFault switches a fault of the webhook on in place of the one before; the empty id heals it.
func (s *Session) SetFault(ctx context.Context, id string) error {
	s.mu.Lock()
	server, client, observer, benching := s.webhook, s.client, s.observer, s.state.Benching
	s.mu.Unlock()
	if server == nil {
		return fmt.Errorf("the track %s has no webhook", s.opts.Track.ID)
	}
	if benching {
		return errors.New("the bench of faults is running, and switches them itself: wait until it has ended, or end it")
	}
	fault, err := conversion.FaultByID(id)
	if err != nil {
		return err
	}
	if err := server.Switch(ctx, client, s.state.Resource, fault); err != nil {
		return err
	}
	observer.Reread()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Fault = fault
	s.publish()
	return nil
}

// reviews is the place of the newest conversion in its log; 0 where there is no webhook.
func (s *Session) reviews() int {
	if s.webhook == nil {
		return 0
	}
	return s.webhook.Log().Seq()
}

// reviewed is closed when the webhook is asked next; nil where there is none.
func (s *Session) reviewed() <-chan struct{} {
	if s.webhook == nil {
		return nil
	}
	return s.webhook.Log().Grown()
}

// conversions are the last ones after a place in the log; those of a bench are not among them.
func (s *Session) conversions(since, most int) []evidence.Conversion {
	if s.webhook == nil {
		return nil
	}
	all := slices.DeleteFunc(s.webhook.Log().Since(since), bench.Owns)
	return all[max(0, len(all)-most):]
}

// counting does an action while the observer holds still, so that the conversions meanwhile are the action's. Where the
// action counts them, it waits until nobody else asks the webhook any more, and returns how many they were.
func (s *Session) counting(ctx context.Context, a lesson.Action, observer *evidence.Observer, do func() error) (found []evidence.Conversion, n int, err error) {
	if s.webhook == nil {
		return nil, 0, do()
	}
	release, err := observer.Hold(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	if a.Count {
		if err := s.quiet(ctx); err != nil {
			return nil, 0, err
		}
	}
	from := s.reviews()
	err = do()
	if a.Count && err == nil {
		err = s.quiet(ctx)
	}
	return s.conversions(from, keptReviews), s.reviews() - from, err
}

// quiet waits until the webhook has not been asked for a while.
func (s *Session) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quietWithin, fmt.Errorf("the webhook was asked again and again for %s, so that nothing could be counted: who else uses %s?", quietWithin, s.state.Resource))
	defer cancel()
	for {
		select {
		case <-s.reviewed():
		case <-time.After(quietFor):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fault is what is wrong with the webhook now.
func (s *Session) fault() conversion.Fault {
	if s.webhook == nil {
		return conversion.Fault{}
	}
	return s.webhook.Fault()
}
