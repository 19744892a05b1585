package rewrite

import (
	"context"
	"sync"
	"time"
)

const (
	firstWorkers = 8
	mostWorkers  = 64
	tooSlow      = 500 * time.Millisecond // for a write, on average: the server has more to do than it can
)

// pace decides how many writes are under way at once. Where the number is not given, it follows the server: it is doubled
// until the server says 429 or becomes slow, is halved then, and from there on raised by one at a time. More writes at
// once bring more writes a second for as long as the server is not slow.
type pace struct {
	tokens chan struct{} // one for each write that may begin

	mu     sync.Mutex
	fixed  bool
	limit  int
	owed   int       // tokens to be taken out of use as writes end
	halved time.Time // zero while the limit is being doubled
	window window
}

// window is what was measured since the limit was set.
type window struct {
	writes int
	waited time.Duration // for their answers, all together
}

func newPace(workers int) *pace {
	p := &pace{tokens: make(chan struct{}, max(workers, mostWorkers)), fixed: workers > 0}
	if !p.fixed {
		workers = firstWorkers
	}
	for ; p.limit < workers; p.limit++ {
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

// answered counts one answer of the server, and how long it took.
func (p *pace) answered(took time.Duration, refused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fixed {
		return
	}
	p.window.writes++
	p.window.waited += took
	if refused {
		p.halve(time.Now())
	} else if p.window.writes >= 4*p.limit {
		p.adjust(time.Now())
	}
}

// release ends a write.
func (p *pace) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// adjust sets the next limit by what was measured.
func (p *pace) adjust(now time.Time) {
	switch {
	case p.window.waited/time.Duration(p.window.writes) > tooSlow:
		p.halve(now)
		return
	case p.halved.IsZero():
		p.set(2 * p.limit)
	default:
		p.set(p.limit + 1)
	}
	p.window = window{}
}

// halve answers a server that has too much to do; once for all the writes that were under way.
func (p *pace) halve(now time.Time) {
	if now.Sub(p.halved) < time.Second {
		return
	}
	p.set(p.limit / 2)
	p.halved, p.window = now, window{}
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
