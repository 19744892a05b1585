package evidence

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/cluster"
)

// Actor says who sent a request.
type Actor string

const (
	// ByStep is a request that a step's action consists of.
	ByStep Actor = "step"
	// ByObserver is a read by which the lab follows the cluster.
	ByObserver Actor = "observer"
	// ByProbe is a request by which the lab finds out whether something is in effect, or puts the scene right.
	ByProbe Actor = "probe"
	// ByHand is a request of somebody else, such as the learner's kubectl.
	ByHand Actor = "hand"
)

// Exchange is one HTTP request to the API server and its response.
type Exchange struct {
	Seq         int       `json:"-"` // its place in the log, from 1
	At          time.Time `json:"-"`
	Actor       Actor     `json:"actor"`
	Method      string    `json:"method"`
	Path        string    `json:"path"` // with its query
	ContentType string    `json:"contentType,omitempty"`
	Body        string    `json:"body,omitempty"` // cut at cluster.MaxRecordedBody
	Status      int       `json:"status"`         // 0: no answer came, and Message says why
	Reason      string    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	Causes      []Cause   `json:"causes,omitempty"`
	Warnings    []string  `json:"warnings,omitempty"`
	DurationMS  float64   `json:"durationMs"`
	Response    string    `json:"-"` // cut at cluster.MaxRecordedBody
}

// Cause is one entry of a Status's details: which field was refused, and why.
type Cause struct {
	Field   string `json:"field,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Refused says that the server answered with an error.
func (x *Exchange) Refused() bool { return x.Status >= 400 }

// DryRun says that the request asked the server to change nothing; kubectl says so of a deletion in its body.
func (x *Exchange) DryRun() bool {
	return strings.Contains(x.Path, "dryRun=All") || x.Method == http.MethodDelete && strings.Contains(x.Body, `"dryRun":["All"]`)
}

// To says whether the request went to a path (without its query).
func (x *Exchange) To(path string) bool {
	bare, _, _ := strings.Cut(x.Path, "?")
	return bare == path
}

// understand fills in what the server's Status says of a refusal. Some refusals have none: a 404 of a version that is
// not served is plain text.
func (x *Exchange) understand(body []byte) {
	if !x.Refused() {
		return
	}
	var s metav1.Status
	if json.Unmarshal(body, &s) != nil || s.Kind != "Status" {
		x.Message = strings.TrimSpace(string(cut(body)))
		return
	}
	x.Reason, x.Message = string(s.Reason), s.Message
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			x.Causes = append(x.Causes, Cause{Field: c.Field, Reason: string(c.Type), Message: c.Message})
		}
	}
}

func cut(b []byte) []byte { return b[:min(len(b), cluster.MaxRecordedBody)] }

// FromRequest makes an Exchange of what the server recorded of somebody else's request.
func FromRequest(r cluster.Request) Exchange {
	x := Exchange{At: r.At, Actor: ByHand, Method: r.Method, Path: r.Path, ContentType: r.ContentType, Body: string(r.Body),
		Status: r.Status, Warnings: r.Warnings, DurationMS: milliseconds(r.Duration), Response: string(cut(r.Response))}
	x.understand(r.Response)
	return x
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// keep is how many exchanges a Log holds at the most. A rewrite of ten thousand objects must not fill the memory.
const keep = 4096

// Log is the list of exchanges of one run, in the order of their answers. It is safe for concurrent use.
type Log struct{ logOf[Exchange] }

// NewLog makes an empty Log.
func NewLog() *Log {
	return &Log{newLog(keep, func(x *Exchange, seq int) { x.Seq = seq })}
}

// warnings are the texts of a response's Warning headers.
func warnings(h http.Header) []string { return cluster.WarningTexts(h.Values("Warning")) }
