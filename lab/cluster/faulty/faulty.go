// Package faulty is a broken network in front of a live API server. It is for tests: the server behind it is a real one,
// and what it answers is what it answers; only what lies between it and the lab can be switched to fail.
package faulty

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/storage"
)

// Cluster is an embedded server behind a network that fails on demand. Its Reset goes through the API, as that of a whole
// cluster does, and its etcd is reached through the same network.
type Cluster struct {
	*embedded.Server
	t           testing.TB
	address     string
	certificate *embedded.Certificate
	proxy       *httputil.ReverseProxy

	mu     sync.Mutex
	server *http.Server // nil while nobody listens
	tunnel map[net.Conn]bool
	fault  Fault
}

// Fault answers a request in the server's place: false where the request is to go on to the server.
type Fault func(http.ResponseWriter, *http.Request) bool

var _ cluster.Cluster = &Cluster{}

// Start runs a server and the network before it. The test's end ends both.
func Start(t testing.TB) *Cluster {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return Before(t, s)
}

// Before puts a broken network before a server that runs.
func Before(t testing.TB, s *embedded.Server) *Cluster {
	t.Helper()
	c := &Cluster{Server: s, t: t, tunnel: map[net.Conn]bool{}}
	own := s.Config()
	to, err := url.Parse(own.Host)
	c.must(err)
	transport, err := rest.TransportFor(&rest.Config{Host: own.Host, TLSClientConfig: own.TLSClientConfig})
	c.must(err)
	c.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1, // a watch is to be seen as it comes
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	c.certificate, err = embedded.NewCertificate()
	c.must(err)
	c.Back()
	t.Cleanup(c.Gone)
	return c
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// Config leads through the network.
func (c *Cluster) Config() *rest.Config {
	config := c.Server.Config()
	config.Host, config.CAData = "https://"+c.address, c.certificate.CertPEM
	return config
}

// Reset goes through the API, and so through the network.
func (c *Cluster) Reset(ctx context.Context, scope cluster.Scope) error {
	return cluster.Remove(ctx, c, scope.Resource)
}

var socket = regexp.MustCompile(`unix://([^\s"]+)`)

// Storage reads through the network.
func (c *Cluster) Storage() (storage.Reader, error) {
	path, _ := c.Kubeconfig()
	config, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return storage.NewEtcd(context.Background(), storage.EtcdConfig{
		Endpoints: []string{"http://localhost:2379"},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			return c.dial(ctx, string(socket.FindSubmatch(config)[1]))
		},
	})
}

func (c *Cluster) dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.server == nil {
		conn.Close()
		err = errors.New("the network is down")
	}
	if err == nil {
		c.tunnel[conn] = true
	}
	return conn, err
}

// Gone breaks every connection and refuses new ones.
func (c *Cluster) Gone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return
	}
	c.server.Close()
	c.server = nil
	for conn := range c.tunnel {
		conn.Close()
	}
	clear(c.tunnel)
}

// Back listens again, at the same address.
func (c *Cluster) Back() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return
	}
	at := c.address
	if at == "" {
		at = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", at)
	c.must(err)
	pair, err := tls.X509KeyPair(c.certificate.CertPEM, c.certificate.KeyPEM)
	c.must(err)
	c.address = l.Addr().String()
	c.server = &http.Server{Handler: http.HandlerFunc(c.serve), TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go c.server.ServeTLS(l, "", "") // ends with Gone
}

func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	fault := c.fault
	c.mu.Unlock()
	if fault == nil || !fault(w, r) {
		c.proxy.ServeHTTP(w, r)
	}
}

// Break lets a fault see every request from now on; nil is a network without one.
func (c *Cluster) Break(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// Cut is the end of the network, until Back.
func (c *Cluster) Cut() Fault {
	return func(http.ResponseWriter, *http.Request) bool {
		c.Gone()
		panic(http.ErrAbortHandler)
	}
}

// After lets a number of requests of a method pass before a fault begins.
func After(n int, method string, f Fault) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		begun := n == 0
		if !begun && r.Method == method {
			n--
		}
		mu.Unlock()
		return begun && f(w, r)
	}
}

// Unauthorized is an API server that does not know the credentials any more.
func Unauthorized() Fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		return answer(w, metav1.Status{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"})
	}
}

// ForbidDefinitions is what RBAC answers to somebody who may do nothing to CRDs.
func ForbidDefinitions() Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, name, _ := strings.Cut(r.URL.Path, "/customresourcedefinitions")
		if !strings.Contains(r.URL.Path, "/customresourcedefinitions") {
			return false
		}
		name = strings.Trim(name, "/")
		verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
		return answer(w, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf(`customresourcedefinitions.apiextensions.k8s.io %q is forbidden: User "ada" cannot %s resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`, name, verb),
			Details: &metav1.StatusDetails{Name: name, Group: "apiextensions.k8s.io", Kind: "customresourcedefinitions"}})
	}
}

// Busy is a server that answers a number of requests of a method with 429, and asks to wait a second; any method where
// it is empty.
func Busy(n int, method string) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 || method != "" && r.Method != method {
			return false
		}
		n--
		w.Header().Set("Retry-After", "1")
		return answer(w, metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Message: "Too many requests, please try again later.", Details: &metav1.StatusDetails{RetryAfterSeconds: 1}})
	}
}

// Slow lets every answer wait.
func Slow(by time.Duration) Fault {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(by):
		case <-r.Context().Done():
		}
		return false
	}
}

// Held keeps requests of a method without an answer until they are given up, or released is closed.
func Held(method string, released <-chan struct{}) Fault {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == method {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		return false
	}
}

func answer(w http.ResponseWriter, s metav1.Status) bool {
	s.TypeMeta, s.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s) // whoever asked may have gone
	return true
}
