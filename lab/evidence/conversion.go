package evidence

import (
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

// ConversionLog is the list of conversions of one run, in the order of their answers. It is safe for concurrent use.
type ConversionLog struct{ logOf[Conversion] }

// NewConversionLog makes an empty ConversionLog.
func NewConversionLog() *ConversionLog {
	return &ConversionLog{newLog(keepConversions, func(c *Conversion, seq int) { c.Seq = seq })}
}
