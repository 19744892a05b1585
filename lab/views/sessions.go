package views

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// sessions holds what was opened, so that it is closed whatever way the program ends: also a session whose opening was
// still under way.
type sessions struct {
	mu      sync.Mutex
	opening sync.WaitGroup
	closed  bool
	all     []Session
}

var errClosed = errors.New("the lab is closing")

// enter has close wait for what opens or ends a session, until opening is told that it is done.
func (s *sessions) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.opening.Add(1)
	return nil
}

// open opens a track in one of a Lab's ways.
func (s *sessions) open(ctx context.Context, way func(context.Context, string) (Session, error), track string) (Session, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.opening.Done()
	opened, err := way(ctx, track)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, opened)
	return opened, nil
}

// end closes a session, once what goes on in it has ended.
func (s *sessions) end(ctx context.Context, session Session) error {
	if err := s.enter(); err != nil {
		return err // it is closed with all others
	}
	defer s.opening.Done()
	s.mu.Lock()
	s.all = slices.DeleteFunc(s.all, func(other Session) bool { return other == session })
	s.mu.Unlock()
	return errors.Join(session.Park(ctx), session.Close(ctx))
}

// close ends the context of everything that goes on, waits for sessions that are being opened or ended, and closes all.
func (s *sessions) close(cancel context.CancelFunc) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	cancel()
	s.opening.Wait()
	ctx, done := context.WithTimeout(context.Background(), closing)
	defer done()
	for _, session := range s.all {
		_ = session.Close(ctx) // the learner has gone; the cluster's own end cleans up what is left
	}
}
