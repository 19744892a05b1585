// Package rewrite makes the API server write objects again, so that they are stored at the storage version; relabels
// their managedFields; trims status.storedVersions; and waits until a switch of the storage version is in effect.
package rewrite

import (
	"context"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// Rewriter works on one custom resource.
type Rewriter struct {
	Client    *evidence.Client // its requests are recorded as they are
	Storage   storage.Reader   // nil where the bytes cannot be read
	Resource  storage.Resource
	Namespace string  // all namespaces where empty
	Workers   int     // 0: follow the server
	QPS       float64 // writes a second; 0: no limit
	// Progress is told after every few writes, from one goroutine at a time. May be nil.
	Progress func(Progress)
	// Gate is called before every write; it blocks while the work is paused. May be nil.
	Gate func(context.Context) error
}

// Progress says how far a rewrite or a relabelling is.
type Progress struct {
	Done, Total             int
	Failed                  int
	Conflicts               int
	Rate                    float64       // writes a second, over the last second or so
	Left                    time.Duration // at that rate
	BytesBefore, BytesAfter int64         // of the objects done; 0 where bytes cannot be read
	Finished                bool
}

// Result is what a rewrite did.
type Result struct {
	Target     string          `json:"target"`  // the version to which objects were moved
	Written    int             `json:"written"` // objects of which the server wrote new bytes
	Unchanged  int             `json:"unchanged"`
	Gone       int             `json:"gone"` // deleted meanwhile: good
	Relabelled int             `json:"relabelled"`
	Conflicts  int             `json:"conflicts"`
	Failures   []Failure       `json:"failures,omitempty"`
	Before     *storage.Counts `json:"before,omitempty"` // from the bytes
	After      *storage.Counts `json:"after,omitempty"`
	DurationMS float64         `json:"durationMs"`
}

// Failure is one object that could not be rewritten, and why.
type Failure struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Status    int    `json:"status"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message"`
}

