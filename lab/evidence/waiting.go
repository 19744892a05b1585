package evidence

import (
	"sync"
	"time"
)

// slowAfter is how long an answer may take before somebody is told that it is waited for.
const slowAfter = time.Second

// Waiting is a request whose answer is long in coming.
type Waiting struct {
	Actor  Actor
	Method string
	Path   string    // without its query
	Since  time.Time // when it was sent
}

// waits knows the requests of a client and its copies that have been waiting for long.
type waits struct {
	mu      sync.Mutex
	long    map[*Waiting]bool
	changed chan struct{}
}

func newWaits() *waits { return &waits{long: map[*Waiting]bool{}, changed: make(chan struct{})} }

// begin notes a request, if it waits for long; the function that it returns, that it waits no more.
func (w *waits) begin(r Waiting) (end func()) {
	ended := false
	late := time.AfterFunc(slowAfter, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !ended {
			w.long[&r] = true
			w.signal()
		}
	})
	return func() {
		late.Stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
		if w.long[&r] {
			delete(w.long, &r)
			w.signal()
		}
	}
}

// signal wakes those who look; the lock is held.
func (w *waits) signal() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Waiting is the request that has been waiting longest among those that have been for a while, of this client and of all
// that were made of it by As and Unrecorded; nil where there is none. The channel is closed when that may have changed.
func (c *Client) Waiting() (*Waiting, <-chan struct{}) {
	c.waits.mu.Lock()
	defer c.waits.mu.Unlock()
	var longest *Waiting
	for r := range c.waits.long {
		if longest == nil || r.Since.Before(longest.Since) {
			longest = r
		}
	}
	return longest, c.waits.changed
}
