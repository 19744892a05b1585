// Package cluster says what a lab needs of a live API server. Where it runs is in the packages below: embedded, and
// whatever else can be reached.
package cluster

import (
	"context"
	"errors"
	"net"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/storage"
)

// ErrUnreachable says that this cluster cannot call this process.
var ErrUnreachable = errors.New("the cluster cannot reach this process")

// Cluster is a live API server that a lab runs against.
type Cluster interface {
	Info() Info
	// Config is for clients. It has no hidden retries and no client-side rate limit.
	Config() *rest.Config
	// Kubeconfig is for the learner's kubectl: the file, and flags to add if any.
	Kubeconfig() (path, flags string)
	// Storage reads the stored values; storage.ErrNoAccess where etcd cannot be reached. Where the cluster is the lab's own, it
	// is a storage.Writer as well.
	Storage() (storage.Reader, error)
	// ListenWebhook makes this process reachable for the API server; ErrUnreachable where it cannot be.
	ListenWebhook(context.Context) (*WebhookListener, error)
	// Reset removes what the lab made, whatever state it is in.
	Reset(context.Context, Scope) error
	// Close ends what Start began and leaves nothing behind.
	Close(context.Context) error
}

// Info says what a cluster is and what it lacks.
type Info struct {
	Type    string   // embedded, kind, existing
	Version string   // as the server's /version says it, without the leading v
	Lacks   []string // what a full cluster has and this one has not, for people
	Shared  bool     // others may use it too: what is there belongs to somebody
}

// Scope is what belongs to one lab: the CRD, its objects and their namespace.
type Scope struct {
	Resource  storage.Resource
	Namespace string // where empty, a Reset leaves namespaces alone: it takes seconds to delete one
	Learner   string // whose it is among many; empty where nobody gave a name
	Owner     string // the id of who must own it (OwnerID); empty where nobody else gets at the cluster
	// Versions are all at which objects may be stored; for a Reset where the bytes, which tell, cannot be read.
	Versions []string
}

// WebhookListener is where the API server can reach this process. The caller owns TLS, faults and rotation.
type WebhookListener struct {
	net.Listener
	Service  apiextensionsv1.ServiceReference
	DNSNames []string
}

// Request is one request that somebody else than the lab sent to the API server, with its answer.
type Request struct {
	At          time.Time     `json:"at"`
	Method      string        `json:"method"`
	Path        string        `json:"path"` // with its query
	ContentType string        `json:"contentType,omitempty"`
	UserAgent   string        `json:"userAgent,omitempty"`
	Body        []byte        `json:"body,omitempty"` // cut at MaxRecordedBody
	Status      int           `json:"status"`
	Response    []byte        `json:"response,omitempty"` // cut at MaxRecordedBody, that of a refusal at MaxRecordedRefusal
	Warnings    []string      `json:"warnings,omitempty"` // texts of the Warning headers
	Duration    time.Duration `json:"duration"`
}

// MaxRecordedBody is how much of a body is kept of a recorded request, in bytes.
const MaxRecordedBody = 16 << 10

// MaxRecordedRefusal is how much is kept of the answer of a refusal: its end says why, and a refused CRD may stand in it twice.
const MaxRecordedRefusal = 256 << 10

// ActorHeader marks the requests of the lab itself, so that what others send can be told from them.
const ActorHeader = "X-Crdlab-Actor"

// A RequestWatcher is a Cluster that sees the requests of others, such as the learner's kubectl.
type RequestWatcher interface {
	// WatchRequests delivers what others ask of the API server from now on, until the context ends or the server does;
	// then the channel is closed.
	WatchRequests(context.Context) (<-chan Request, error)
}

// A Preparer is a Cluster on which something must be there before a lab can begin, such as its namespace.
type Preparer interface {
	// Prepare makes what is missing. To prepare what is there does nothing; after a Reset it must be done again.
	Prepare(context.Context, Scope) error
}

// A Secluded is a Cluster that may know, without trying, that it cannot call this process.
type Secluded interface {
	// Secluded is ErrUnreachable, with the reason and the way on, where ListenWebhook cannot succeed; nil where it may.
	Secluded() error
}

// Phase is one part of the start of a cluster. Each is reported twice: when it begins, and Done when it has ended.
type Phase struct {
	Name string        `json:"name"`
	Done bool          `json:"done"`
	Took time.Duration `json:"took,omitempty"` // where Done
}

// A Watchdog is a Cluster that can end by itself, such as a child process.
type Watchdog interface {
	// Ended is closed when the API server has ended without having been asked to; Err then says why, and what to do.
	Ended() <-chan struct{}
	Err() error
}

// WarningTexts takes the texts out of the values of Warning headers; a header that cannot be read stands as it came.
func WarningTexts(headers []string) []string {
	var out []string
	for _, h := range headers {
		parsed, errs := utilnet.ParseWarningHeaders([]string{h})
		if len(errs) > 0 {
			out = append(out, h)
		}
		for _, w := range parsed {
			out = append(out, w.Text)
		}
	}
	return out
}
