// Package bench finds out what every fault of the conversion webhook does to every operation: a table that is filled from
// real requests to a live server. The CRD, the objects and the questions are its own, and are gone afterwards.
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// None is the row in which all is well.
const None = "none"

// At which version an operation is asked for.
const (
	Stored = "stored" // the one that the objects are stored at
	Other  = "other"  // the one that they have to be converted to
)

// The operations.
const (
	Get        = "GET"
	List       = "LIST"        // in one page: as of now
	ListCached = "LIST cached" // with resourceVersion=0: as of any time
	Watch      = "WATCH"       // and a write through the stored version, which has to bring an event
	Create     = "CREATE"
	Update     = "UPDATE" // a PUT of what was read
	Patch      = "PATCH"  // a merge patch
	Apply      = "APPLY"  // on the server side
	Delete     = "DELETE"
)

// Operations are all operations, in the order of the table.
var Operations = []string{Get, List, ListCached, Watch, Create, Update, Patch, Apply, Delete}

// Cell is what became of one operation under one fault.
type Cell struct {
	Fault     string `json:"-"`         // its id, or None
	Operation string `json:"operation"` // one of Operations
	At        string `json:"at"`        // Stored or Other
	Status    int    `json:"status"`    // 0: no answer came
	Answer    string `json:"answer"`    // in one line: the cause of a refusal; else what is in the answer that was not asked for
	// Reviews is how many the webhook was sent because of it, as long as the fault was on. A cache that an event has broken
	// asks for it again about ten times a second: of a watch that waits in vain they are so many, and a write at the stored
	// version that comes after it has one or two.
	Reviews    int     `json:"reviews"`
	DurationMS float64 `json:"durationMs"` // until the answer; of a watch, from the write to the event
}

// Patience is how long an operation is waited for.
const Patience = 3 * time.Second

// slowness is how long slow delays each answer here: one review is well within Patience, and the many of a write are not.
const slowness = 500 * time.Millisecond

// Plural is what the CRD of the bench is called; it is in the group of the lab.
const Plural = "benchwidgets"

// Scene is where a bench stands. The CRD, the objects in the namespace and the webhook's fault are the bench's while it
// runs.
type Scene struct {
	Cluster       cluster.Cluster
	Client        *evidence.Client // that does not record, or records for nobody else: the requests are many
	Webhook       *conversion.Server
	Lab           cluster.Scope // whose group, namespace and labels it uses; the namespace is there
	Stored, Other string        // versions between which the webhook converts
	Patience      time.Duration // how long an operation is waited for; Patience where 0
}

// Resource is the resource of the bench in a group.
func Resource(group string) storage.Resource { return storage.Resource{Group: group, Plural: Plural} }

// Faults are the rows of a whole table: none, and then every fault with parameters that tell the most. Of one that can be
// about one object, it is that which is read at the other version.
func Faults() []conversion.Fault {
	out := []conversion.Fault{{}}
	for _, f := range conversion.Faults() {
		if f.Delay > 0 {
			f.Delay = slowness
		}
		if f.ID == "failed-one" {
			f.Object = name(f, Get, Other)
		}
		out = append(out, f)
	}
	return out
}

// FaultByID finds a row of the whole table; the one where all is well is None.
func FaultByID(id string) (conversion.Fault, error) {
	for _, f := range Faults() {
		if ID(f) == id {
			return f, nil
		}
	}
	return conversion.Fault{}, fmt.Errorf("there is no fault %q", id)
}

// ID is what the row of a fault is called.
func ID(f conversion.Fault) string {
	if f.ID == "" {
		return None
	}
	return f.ID
}

// Run asks for every operation under each fault, one fault after the other, and returns the cells in that order, and in
// the order of Operations. Each is told once a row is complete; each may be nil. Afterwards the webhook is healthy and
// nothing of the bench is left, whatever the error is. The error of a context that ended comes with the rows until then.
func Run(ctx context.Context, s Scene, faults []conversion.Fault, each func(Cell)) (cells []Cell, err error) {
	if s.Patience == 0 {
		s.Patience = Patience
	}
	b := &bench{Scene: s, resource: Resource(s.Lab.Resource.Group)}
	defer func() { err = errors.Join(err, b.remove(ctx)) }()
	if err := b.build(ctx); err != nil {
		return nil, fmt.Errorf("build the bench: %w", err)
	}
	for _, f := range faults {
		row, err := b.row(ctx, f)
		if err != nil {
			return cells, fmt.Errorf("the bench, at the fault %s: %w", ID(f), err)
		}
		for _, c := range row {
			cells = append(cells, c)
			if each != nil {
				each(c)
			}
		}
	}
	return cells, nil
}
