package rewrite

import (
	"context"
	"sync"
	"time"
)

const (
	fewestWorkers = 4
	mostWorkers   = 64
)

// pace decides how many writes are under way at once. Where the number is not given, it follows the server: it is
// raised while more writes at once bring more writes a second, lowered again where they bring fewer, and halved when the
// server says 429.
type pace struct {
	tokens chan struct{} // one for each write that may begin

	mu       sync.Mutex
	fixed    bool
	limit    int
	owed     int // tokens to be taken out of use as writes end
	window   time.Time
	writes   int     // in this window
	rate     float64 // of the window before, writes a second
	growing  bool
	deferred time.Time // no second halving before then: one crowd is answered with many 429s
}

func newPace(workers int) *pace {
	p := &pace{tokens: make(chan struct{}, max(workers, mostWorkers)), limit: workers, fixed: workers > 0, growing: true, window: time.Now()}
	if !p.fixed {
		p.limit = fewestWorkers
	}
	for range p.limit {
		p.tokens <- struct{}{}
	}
	return p
}

// acquire waits until one more write may begin.
func (p *pace) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-p.tokens:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release ends a write.
func (p *pace) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	p.adjust(time.Now())
	p.give()
}

// give puts one token back, unless it is owed.
func (p *pace) give() {
	if p.owed > 0 {
		p.owed--
		return
	}
	p.tokens <- struct{}{}
}

// adjust looks at a window of writes once it is full, and sets the next limit.
func (p *pace) adjust(now time.Time) {
	if p.fixed || p.writes < 4*p.limit {
		return
	}
	rate := float64(p.writes) / now.Sub(p.window).Seconds()
	switch {
	case rate > 1.05*p.rate && p.growing, rate > p.rate && !p.growing:
		p.growing = true
		p.set(2 * p.limit)
	case rate < 0.9*p.rate:
		p.growing = false
		p.set(p.limit / 2)
	default:
		p.growing = false
		p.set(p.limit + 1)
	}
	p.rate, p.window, p.writes = rate, now, 0
}

// refused halves the number of writes under way.
func (p *pace) refused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.fixed || now.Before(p.deferred) {
		return
	}
	p.deferred = now.Add(time.Second)
	p.growing, p.window, p.writes = false, now, 0
	p.set(p.limit / 2)
}

// set changes the limit. Writes that are under way go on.
func (p *pace) set(limit int) {
	limit = min(max(limit, 1), mostWorkers)
	for ; p.limit < limit; p.limit++ {
		p.give()
	}
	for ; p.limit > limit; p.limit-- {
		select {
		case <-p.tokens:
		default:
			p.owed++
		}
	}
}

// workers is how many writes may be under way at once.
func (p *pace) workers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}
