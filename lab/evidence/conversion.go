package evidence

import (
	"sync"
	"time"
)

// Results of a conversion, as its answer says them. Where a fault kept the webhook from answering so, the result names
// what came instead.
const (
	ConversionSuccess = "Success"
	ConversionFailed  = "Failed"
)

// MaxConversionNames is how many names of objects are kept of one review.
const MaxConversionNames = 50

// Conversion is one ConversionReview that the API server sent to the webhook, and its answer.
type Conversion struct {
	Seq               int       `json:"-"` // its place in the log, from 1
	At                time.Time `json:"-"`
	Names             []string  `json:"-"` // of the objects, namespace/name; the first MaxConversionNames
	UID               string    `json:"uid"`
	DesiredAPIVersion string    `json:"desiredAPIVersion"`
	From              string    `json:"from"`    // the objects' apiVersion; where they differ, each once, parted by ", "
	Objects           int       `json:"objects"` // how many
	DurationMS        float64   `json:"durationMs"`
	Result            string    `json:"result"`
	Message           string    `json:"message"`
	Request           string    `json:"request"`  // the body, cut at cluster.MaxRecordedBody
	Response          string    `json:"response"` // the body, cut at cluster.MaxRecordedBody; empty where no answer was sent
}

// SlowAfter is from when on the API server traces a call for so many objects as slow. Its clock runs a little longer than the
// webhook's: what was on the way counts as well.
func (c *Conversion) SlowAfter() time.Duration {
	return time.Duration(50+8*c.Objects) * time.Millisecond
}

// Slow says that the call took longer than the API server lets pass without a trace.
func (c *Conversion) Slow() bool {
	return c.DurationMS > float64(c.SlowAfter().Milliseconds())
}

// Answered fills in the answer's body, and the time since At.
func (c *Conversion) Answered(body []byte) {
	c.Response = string(cut(body))
	c.DurationMS = milliseconds(time.Since(c.At))
}

// Asked fills in the request's body.
func (c *Conversion) Asked(body []byte) { c.Request = string(cut(body)) }

// keepConversions is how many conversions a ConversionLog holds at the most: 32 MiB if every body were as long as it may.
const keepConversions = 1024

// ConversionLog is the list of conversions of one run, in the order of their answers. It is safe for concurrent use. The
// oldest go first; the difference of two Seq still counts them.
type ConversionLog struct {
	mu      sync.Mutex
	entries []Conversion
	seq     int
	grown   chan struct{}
}

// NewConversionLog makes an empty ConversionLog.
func NewConversionLog() *ConversionLog { return &ConversionLog{grown: make(chan struct{})} }

// Add appends a conversion and returns it with its place in the log.
func (l *ConversionLog) Add(c Conversion) Conversion {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	c.Seq = l.seq
	if len(l.entries) >= keepConversions {
		l.entries = append(l.entries[:0:0], l.entries[keepConversions/4:]...)
	}
	l.entries = append(l.entries, c)
	close(l.grown)
	l.grown = make(chan struct{})
	return c
}

// Seq is the place of the newest conversion; 0 where there is none.
func (l *ConversionLog) Seq() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq
}

// Since returns a copy of the conversions after a place that are still held.
func (l *ConversionLog) Since(seq int) []Conversion {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.seq - len(l.entries) + 1
	from := max(0, seq+1-first)
	if from >= len(l.entries) {
		return nil
	}
	return append([]Conversion(nil), l.entries[from:]...)
}

// Grown is closed when the next conversion is added.
func (l *ConversionLog) Grown() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grown
}
