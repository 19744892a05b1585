package views

import (
	"context"
	"errors"
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

// open opens a track in one of a Lab's ways.
func (s *sessions) open(ctx context.Context, way func(context.Context, string) (Session, error), track string) (Session, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	s.opening.Add(1)
	s.mu.Unlock()
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

// close ends the context of everything that goes on, waits for sessions that are being opened, and closes all.
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
