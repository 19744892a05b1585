package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/storage"
)

// withdrawTimeout is how long it may take to take back a Service.
const withdrawTimeout = 2 * time.Second

// Full is what all full Kubernetes clusters have in common, whoever made them: the lab's namespace, the Service before a
// webhook, and what has to be ended when the cluster is closed.
type Full struct {
	config *rest.Config
	client kubernetes.Interface

	mu       sync.Mutex
	opened   []io.Closer // readers and listeners that End ends
	webhooks []*serviceListener
	scope    Scope // that was prepared last
}

// NewFull is for a cluster on which nothing was prepared yet; the namespace is that of its lab.
func NewFull(config *rest.Config, client kubernetes.Interface, namespace string) *Full {
	return &Full{config: config, client: client, scope: Scope{Namespace: namespace}}
}

// Prepare makes the scope's namespace where it is missing, and makes the Service of a listener lead here again.
func (f *Full) Prepare(ctx context.Context, scope Scope) error {
	if err := MakeNamespace(ctx, f.config, scope); err != nil {
		return err
	}
	f.mu.Lock()
	f.scope = scope
	webhooks := slices.Clone(f.webhooks)
	f.mu.Unlock()
	for _, w := range webhooks {
		if w.service.Scope.Namespace != scope.Namespace {
			continue
		}
		if _, err := w.service.Announce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Clear deletes the scope's CRD on the cluster with its objects, whatever state they are in, then the Service of a webhook and
// the namespace, and returns when they are gone. A CRD without the lab's label is ErrForeign; such a namespace is left alone.
func (f *Full) Clear(ctx context.Context, c Cluster, scope Scope) error {
	if err := Remove(ctx, c, scope.Resource, scope.Versions...); err != nil || scope.Namespace == "" {
		return err
	}
	if err := RemoveWebhookService(ctx, f.client, scope.Namespace); err != nil {
		return err
	}
	return RemoveNamespace(ctx, c, scope)
}

// Listen makes the Service crdlab-webhook, in the namespace that was prepared last, and has somebody open a socket and make
// the Service lead there. The last one that listens is the one that is found. A Prepare after a Clear tells the cluster again.
func (f *Full) Listen(ctx context.Context, open func(context.Context, *WebhookService) (net.Listener, error)) (*WebhookListener, error) {
	f.mu.Lock()
	scope := f.scope
	f.mu.Unlock()
	if err := f.Prepare(ctx, scope); err != nil {
		return nil, err
	}
	l := &serviceListener{cluster: f, service: WebhookService{Client: f.client, Scope: scope}}
	socket, err := open(ctx, &l.service)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the API server's conversion requests: %w", err), l.Close())
	}
	l.Listener = socket
	f.remember(l)
	f.mu.Lock()
	f.webhooks = append(f.webhooks, l)
	f.mu.Unlock()
	return l.service.Listener(l), nil
}

// serviceListener is a socket with a Service before it.
type serviceListener struct {
	net.Listener // nil where none could be opened
	cluster      *Full
	service      WebhookService
	once         sync.Once
	err          error
}

// Close stops listening, and takes the Service back where it still leads here.
func (l *serviceListener) Close() error {
	l.once.Do(func() {
		l.cluster.forget(l)
		l.cluster.mu.Lock()
		l.cluster.webhooks = slices.DeleteFunc(l.cluster.webhooks, func(o *serviceListener) bool { return o == l })
		l.cluster.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
		defer cancel()
		l.err = l.service.Withdraw(ctx)
		if l.Listener != nil {
			l.err = errors.Join(l.err, l.Listener.Close())
		}
	})
	return l.err
}

// Keep has End close a reader, unless that is done before.
func (f *Full) Keep(r storage.Reader) storage.Reader {
	kept := &keptReader{Reader: r, cluster: f}
	f.remember(kept)
	return kept
}

type keptReader struct {
	storage.Reader
	cluster *Full
	once    sync.Once
	err     error
}

// Close ends the reader's watches. Closing it again does nothing.
func (r *keptReader) Close() error {
	r.once.Do(func() {
		r.cluster.forget(r)
		r.err = r.Reader.Close()
	})
	return r.err
}

// End closes what was opened. The cluster goes on.
func (f *Full) End() error {
	f.mu.Lock()
	opened := f.opened
	f.opened = nil
	f.mu.Unlock()
	var err error
	for _, o := range opened {
		err = errors.Join(err, o.Close())
	}
	return err
}

// remember has End close something. To close it twice must do nothing.
func (f *Full) remember(o io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, o)
}

// forget is for what was closed before.
func (f *Full) forget(o io.Closer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = slices.DeleteFunc(f.opened, func(other io.Closer) bool { return other == o })
}
