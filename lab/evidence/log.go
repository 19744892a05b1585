package evidence

import "sync"

// logOf is a list of what has happened, in order, of which only the newest are held: the oldest go first, and the difference
// of two places still counts them. It is safe for concurrent use.
type logOf[T any] struct {
	mu      sync.Mutex
	most    int           // held
	place   func(*T, int) // notes an entry's place in the log, from 1
	entries []T
	seq     int
	grown   chan struct{}
}

func newLog[T any](most int, place func(*T, int)) logOf[T] {
	return logOf[T]{most: most, place: place, grown: make(chan struct{})}
}

// Add appends an entry and returns it with its place in the log.
func (l *logOf[T]) Add(x T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.place(&x, l.seq)
	if len(l.entries) >= l.most {
		l.entries = append(l.entries[:0:0], l.entries[l.most/4:]...)
	}
	l.entries = append(l.entries, x)
	close(l.grown)
	l.grown = make(chan struct{})
	return x
}

// Seq is the place of the newest entry; 0 where there is none.
func (l *logOf[T]) Seq() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Since returns a copy of the entries after a place that are still held.
func (l *logOf[T]) Since(seq int) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq - len(l.entries) + 1
	from := max(0, seq+1-first)
	if from >= len(l.entries) {
		return nil
	}
	return append([]T(nil), l.entries[from:]...)
}

// Grown is closed when the next entry is added.
func (l *logOf[T]) Grown() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grown
}
