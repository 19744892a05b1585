// Package rewrite makes the API server write objects again, so that they are stored at the storage version; relabels
// their managedFields; trims status.storedVersions; and waits until a switch of the storage version is in effect.
//
// Every write asks for no change of content, and doing it twice is doing it once: work that was interrupted is taken up
// by doing it again. Nothing is ever re-created.
package rewrite

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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
	Workers   int     // how many writes are under way at once; 0: as many as the server answers best to
	QPS       float64 // writes a second; 0: no limit
	Sample    int     // how many objects DryRun looks at; 0: DefaultSample
	// Progress is told after every few writes, and when the work begins or ends to wait for the server, from one goroutine
	// at a time. May be nil.
	Progress func(Progress)
	// Gate is called before every write, also from several goroutines at once; it blocks while the work is paused. May
	// be nil.
	Gate func(context.Context) error
}

// Progress says how far a rewrite or a relabelling is.
type Progress struct {
	Done, Total int
	Failed      int
	Conflicts   int
	Workers     int           // how many writes may be under way at once, at the moment
	Rate        float64       // writes a second, over the last second or so
	Left        time.Duration // at that rate
	// BytesBefore and BytesAfter are the size of all stored values before the first and after the last write; 0 where
	// bytes cannot be read, and BytesAfter until the work is finished.
	BytesBefore, BytesAfter int64
	// Waiting is what the work waits for just now, for people: a server that does not answer, or that has asked to wait.
	// Empty where it goes on.
	Waiting  string
	Finished bool
	// Migration is how a StorageVersionMigration stands, where one does the work; Done and Total then count objects, not
	// requests, and Quiet is how long it has been waited for its first write; 0 once there was one.
	Migration *Migration
	Quiet     time.Duration
}

// Said is what there is to say of a StorageVersionMigration that goes on; empty where the lab does the work.
func (p *Progress) Said() string {
	switch m := p.Migration; {
	case m == nil:
		return ""
	case p.Quiet > 0:
		return fmt.Sprintf("StorageVersionMigration %s: no write for %d s, which may last some minutes; CRD StorageMigrating %s", orNotYet(m.State), int(p.Quiet.Seconds()), orNotYet(m.CRD))
	default:
		return fmt.Sprintf("StorageVersionMigration %s; CRD StorageMigrating %s", orNotYet(m.State), orNotYet(m.CRD))
	}
}

func orNotYet(condition string) string {
	if condition == "" {
		return "not taken up yet"
	}
	return condition
}

// Result is what a rewrite or a relabelling did.
type Result struct {
	Target     string          `json:"target"`            // the version to which objects were moved
	Through    string          `json:"through,omitempty"` // the version at which stale objects were written, where it is another
	Written    int             `json:"written"`           // objects whose resourceVersion is another since they were listed
	Unchanged  int             `json:"unchanged"`
	Gone       int             `json:"gone"` // deleted meanwhile: good
	Relabelled int             `json:"relabelled"`
	Conflicts  int             `json:"conflicts"`
	Failures   []Failure       `json:"failures,omitempty"`
	Before     *storage.Counts `json:"before,omitempty"` // from the bytes
	After      *storage.Counts `json:"after,omitempty"`
	// EntriesBefore and EntriesAfter count the managedFields entries by the version that they name; only of a
	// relabelling.
	EntriesBefore map[string]int `json:"entriesBefore,omitempty"`
	EntriesAfter  map[string]int `json:"entriesAfter,omitempty"`
	DurationMS    float64        `json:"durationMs"`
	Loads         []Load         `json:"loads,omitempty"`     // what its parts were for others, where that was measured
	Loaded        *Load          `json:"loaded,omitempty"`    // all of them together
	Migration     *Migration     `json:"migration,omitempty"` // the StorageVersionMigration that did it; nil where the lab did
	Guard         Guard          `json:"-"`                   // the CRD as it was at the start: what Trim is to be given
}

// Failure is one object that could not be rewritten, and why.
type Failure struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Status    int    `json:"status"` // 0: no answer came
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message"`
}

// Rewrite makes the server write every object whose bytes are not at target, the live storage version: a merge patch
// of {} at target. Where bytes cannot be read it writes every object; for the server that is nothing where nothing
// changes. New defaults of target become part of the bytes, which raises the generation, and nobody is their owner
// afterwards: where the server makes the rewriter one, a second write gives them up.
//
// What fails for one object is in the Result, which is never nil; the error is for what ended the work. A server that
// does not answer is waited for; if it is back within outageEnds, the work goes on, else it ends. Objects that somebody stores at
// another version meanwhile are not looked for: Result.After tells whether any are left.
func (r *Rewriter) Rewrite(ctx context.Context, target string) (*Result, error) {
	w, err := r.start(ctx, target)
	if err != nil {
		return w.result, fmt.Errorf("rewrite %s: %w", r.Resource, err)
	}
	w.check = disowned
	stale := func(o *seen) (*item, error) {
		if o.stored == target {
			m, err := o.metadata()
			if err != nil || ownEntry(m) == none { // an interrupted work may have left one
				return nil, err
			}
		}
		return &item{namespace: o.namespace, name: o.name, resourceVersion: o.resourceVersion}, nil
	}
	send := func(ctx context.Context, it *item) (*evidence.Response, error) {
		resp, err := w.patch(ctx, it, target, evidence.MergePatch, []byte("{}"))
		if err != nil {
			return nil, err
		}
		return w.disown(ctx, it, resp)
	}
	if err := w.run(ctx, stale, send); err != nil {
		return w.result, fmt.Errorf("rewrite %s: %w", r.Resource, err)
	}
	return w.result, nil
}

// patch sends a patch of one object at a version, and asks for metadata alone in return.
func (w *work) patch(ctx context.Context, it *item, version, contentType string, body []byte) (*evidence.Response, error) {
	return w.r.Client.Do(ctx, evidence.Request{
		Method:      http.MethodPatch,
		Path:        evidence.ObjectPath(w.r.Resource, version, it.namespace, it.name),
		Query:       url.Values{"fieldManager": {Manager}},
		ContentType: contentType,
		Accept:      acceptMetadata,
		Body:        body,
	})
}
