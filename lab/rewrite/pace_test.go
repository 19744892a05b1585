package rewrite

import (
	"context"
	"errors"
	"testing"
	"time"
)

// answer lets the pace see a number of answers, each of which took the same.
func answer(p *pace, n int, took time.Duration, refused bool) {
	for range n {
		p.answered(took, refused)
	}
}

func TestThePaceFollowsTheServer(t *testing.T) {
	p := newPace(0)
	if p.workers() != firstWorkers {
		t.Errorf("it begins with %d", p.workers())
	}
	answer(p, 4*firstWorkers, time.Millisecond, false)
	if p.workers() != 2*firstWorkers {
		t.Errorf("quick answers: %d", p.workers())
	}
	answer(p, 2000, time.Millisecond, false)
	if p.workers() != mostWorkers {
		t.Errorf("many quick answers: %d", p.workers())
	}
	answer(p, mostWorkers, time.Millisecond, true) // one crowd of 429s halves once
	if p.workers() != mostWorkers/2 {
		t.Errorf("429s: %d", p.workers())
	}
	answer(p, 4*mostWorkers/2, time.Millisecond, false)
	if p.workers() != mostWorkers/2+1 {
		t.Errorf("quick answers after a halving: %d", p.workers())
	}
}

func TestThePaceGivesWayToASlowServer(t *testing.T) {
	p := newPace(0)
	answer(p, 4*firstWorkers, 2*tooSlow, false)
	if p.workers() != firstWorkers/2 {
		t.Errorf("slow answers: %d", p.workers())
	}
}

func TestAFixedPaceStays(t *testing.T) {
	p := newPace(3)
	answer(p, 100, time.Millisecond, true)
	answer(p, 100, 2*tooSlow, false)
	if p.workers() != 3 {
		t.Errorf("%d", p.workers())
	}
}

func TestNoMoreWritesBeginThanThePaceAllows(t *testing.T) {
	p := newPace(0)
	for range firstWorkers {
		if err := p.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.answered(time.Millisecond, true) // half of them are too many now
	for range firstWorkers / 2 {
		p.release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if len(p.tokens) != 0 {
		t.Errorf("%d may begin while %d are under way", len(p.tokens), firstWorkers/2)
	}
	if err := p.acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	p.release()
	if len(p.tokens) != 1 {
		t.Errorf("one has ended, and %d may begin", len(p.tokens))
	}
}
