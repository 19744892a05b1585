package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/storage"
)

const (
	// webhookName is the Service that ListenWebhook stands for, in the namespace crdlab.
	webhookName = "crdlab-webhook"
	webhookPort = 443
	// resumeInterval and resumeTries bound how long a stream of requests tries to go on after it broke.
	resumeInterval = 20 * time.Millisecond
	resumeTries    = 250
)

// access is how an embedded API server is reached, in whichever process it runs. What it hands out and must be ended
// with it, it remembers.
type access struct {
	endpoint   string // https://127.0.0.1:PORT
	token      string
	ca         []byte // PEM
	storage    string // etcd's endpoint, unix:///...
	kubeconfig string
	version    string

	mu       sync.Mutex
	life     context.Context // ends with the API server
	endLife  context.CancelFunc
	readers  []*reader
	webhooks []*webhookListener
	written  []string // kubeconfigs elsewhere
	space    string   // the namespace that was prepared last
}

// begin starts a life; streams of requests last no longer.
func (a *access) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.life, a.endLife = context.WithCancel(context.Background())
}

// Info says what this cluster is and what it lacks.
func (a *access) Info() cluster.Info {
	return cluster.Info{
		Type:    "embedded",
		Version: a.version,
		Lacks: []string{
			"RBAC", "admission", "garbage collection", "StorageVersionMigration", "a second API server",
		},
	}
}

// Config is for the lab's own clients.
func (a *access) Config() *rest.Config {
	return cluster.OwnConfig(&rest.Config{
		Host:            a.endpoint,
		BearerToken:     a.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.ca},
	})
}

// Kubeconfig is the file for the learner's kubectl; no flags are needed.
func (a *access) Kubeconfig() (path, flags string) { return a.kubeconfig, "" }

// Storage opens a reader of the stored values, which is a storage.Writer as well. It is good until the next Reset or Close of the cluster, which close it;
// one that is not needed any longer may be closed before.
func (a *access) Storage() (storage.Reader, error) {
	// Not bound to a context of the caller: the connection lives as long as the reader.
	etcd, err := storage.NewEtcd(context.Background(), storage.EtcdConfig{Endpoints: []string{a.storage}})
	if err != nil {
		return nil, fmt.Errorf("open the embedded etcd: %w", err)
	}
	r := &reader{Reader: etcd, Writer: etcd, access: a}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readers = append(a.readers, r)
	return r, nil
}

type reader struct {
	storage.Reader
	storage.Writer
	access *access
	once   sync.Once
	err    error
}

// Close ends the reader's watches. Closing it again does nothing.
func (r *reader) Close() error {
	r.once.Do(func() {
		r.access.mu.Lock()
		r.access.readers = slices.DeleteFunc(r.access.readers, func(o *reader) bool { return o == r })
		r.access.mu.Unlock()
		r.err = r.Reader.Close()
	})
	return r.err
}

// closeReaders ends what reads from an etcd that is going away.
func (a *access) closeReaders() {
	a.mu.Lock()
	readers := slices.Clone(a.readers)
	a.mu.Unlock()
	for _, r := range readers {
		r.Close()
	}
}

// Prepare makes the namespace of a learner, whom a fresh server does not know; that of the name-less lab it has. It is where
// the Service of a webhook is taken to be from then on.
func (a *access) Prepare(ctx context.Context, scope cluster.Scope) error {
	a.mu.Lock()
	a.space = scope.Namespace
	a.mu.Unlock()
	if scope.Owner == "" {
		return nil
	}
	return cluster.MakeNamespace(ctx, a.Config(), scope)
}

// ListenWebhook listens on the loopback and makes the API server find it as the Service crdlab-webhook, port 443, of the
// namespace that was prepared last. The last one that listens is the one that is found. Resets do not end it.
func (a *access) ListenWebhook(ctx context.Context) (*cluster.WebhookListener, error) {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the API server's conversion requests: %w", err)
	}
	a.mu.Lock()
	space := cmp.Or(a.space, Namespace)
	a.mu.Unlock()
	l := &webhookListener{Listener: socket, access: a, service: service{
		Namespace: space, Name: webhookName, Port: webhookPort, Address: socket.Addr().String(),
	}}
	if err := a.announce(ctx, http.MethodPost, l.service); err != nil {
		socket.Close()
		return nil, err
	}
	a.mu.Lock()
	a.webhooks = append(a.webhooks, l)
	a.mu.Unlock()
	port := int32(webhookPort)
	return &cluster.WebhookListener{
		Listener: l,
		Service:  apiextensionsv1.ServiceReference{Namespace: space, Name: webhookName, Port: &port},
		DNSNames: []string{webhookName + "." + space + ".svc"},
	}, nil
}

type webhookListener struct {
	net.Listener
	access  *access
	service service
	once    sync.Once
}

// Close stops listening, and the API server no longer finds the Service, as far as it is still there.
func (l *webhookListener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		l.access.mu.Lock()
		l.access.webhooks = slices.DeleteFunc(l.access.webhooks, func(o *webhookListener) bool { return o == l })
		life := l.access.life
		l.access.mu.Unlock()
		ctx, cancel := context.WithTimeout(life, time.Second)
		defer cancel()
		// Where the server cannot be told any more, nothing is left to be told.
		_ = l.access.announce(ctx, http.MethodDelete, l.service)
		err = l.Listener.Close()
	})
	return err
}

// announceAll tells a fresh API server process what the one before it knew.
func (a *access) announceAll(ctx context.Context) error {
	a.mu.Lock()
	webhooks := slices.Clone(a.webhooks)
	a.mu.Unlock()
	for _, w := range webhooks {
		if err := a.announce(ctx, http.MethodPost, w.service); err != nil {
			return err
		}
	}
	return nil
}

func (a *access) announce(ctx context.Context, method string, s service) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	response, err := a.do(ctx, method, servicesPath, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell the API server where Service %s/%s is: %w", s.Namespace, s.Name, err)
	}
	response.Body.Close()
	return nil
}

// do sends one of the lab's own requests; an answer other than 200 is an error.
func (a *access) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	client, err := rest.HTTPClientFor(a.Config())
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.endpoint+path, body)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(text))
	}
	return response, nil
}

// WatchRequests delivers what others than the lab ask of the API server, from the moment that it returns until the
// context ends or the server does. A Reset does not end it. Discovery, health and reads of namespaces are left out. Who
// lags more than 1024 requests behind misses some.
func (a *access) WatchRequests(ctx context.Context) (<-chan cluster.Request, error) {
	a.mu.Lock()
	life := a.life
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(life, cancel)
	stream, err := a.do(ctx, http.MethodGet, requestsPath, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch the requests of others: %w", err)
	}
	out := make(chan cluster.Request)
	go func() {
		defer close(out)
		defer cancel()
		defer detach()
		for stream != nil {
			deliver(ctx, stream.Body, out)
			stream = a.resume(ctx)
		}
	}()
	return out, nil
}

// deliver decodes a stream until it ends or breaks.
func deliver(ctx context.Context, stream io.ReadCloser, out chan<- cluster.Request) {
	defer stream.Close()
	for lines := json.NewDecoder(stream); ; {
		var r cluster.Request
		if err := lines.Decode(&r); err != nil {
			return
		}
		select {
		case out <- r:
		case <-ctx.Done():
			return
		}
	}
}

// resume opens the stream again after it broke, as it does in a Reset; nil when the server is gone.
func (a *access) resume(ctx context.Context) *http.Response {
	tick := time.NewTicker(resumeInterval)
	defer tick.Stop()
	for range resumeTries {
		stream, err := a.do(ctx, http.MethodGet, requestsPath, nil)
		if err == nil {
			return stream
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil // nobody holds the port any more
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// release ends everything that was handed out.
func (a *access) release() {
	a.mu.Lock()
	webhooks, end := slices.Clone(a.webhooks), a.endLife
	a.mu.Unlock()
	for _, w := range webhooks {
		w.Close()
	}
	end()
	a.closeReaders()
}
