package kind

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/crdlab/crdlab/lab/storage"
)

const (
	// etcdPort is where etcd listens in its pod. Its certificate is for localhost, too, whatever the node is called.
	etcdPort = 2379
	etcdName = "localhost"
	// controlSystem is the namespace of the control plane's pods.
	controlSystem = "kube-system"
	// tryTimeout is how long one node may take to lead to its etcd before the next one is tried.
	tryTimeout = 5 * time.Second
	// accessTimeout is how long it may take until the first value can be read: longer than the restart of a node.
	accessTimeout = 20 * time.Second
)

// etcdAccess is with what the API server shows itself to etcd, in PEM.
type etcdAccess struct {
	CA, Certificate, Key string
	Missing              string // why it could not be read
}

// readEtcdAccess takes it from a node of the control plane.
func readEtcdAccess(n nodes.Node) (e etcdAccess, err error) {
	for path, to := range map[string]*string{
		"/etc/kubernetes/pki/etcd/ca.crt":               &e.CA,
		"/etc/kubernetes/pki/apiserver-etcd-client.crt": &e.Certificate,
		"/etc/kubernetes/pki/apiserver-etcd-client.key": &e.Key,
	} {
		if *to, err = read(n, path); err != nil {
			return e, fmt.Errorf("read %s on the node %s: %w", path, n, err)
		}
	}
	return e, nil
}

func (e etcdAccess) tls() (*tls.Config, error) {
	if e.Missing != "" {
		return nil, errors.New(e.Missing)
	}
	own, err := tls.X509KeyPair([]byte(e.Certificate), []byte(e.Key))
	if err != nil {
		return nil, fmt.Errorf("the certificate for etcd: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(e.CA)) {
		return nil, errors.New("etcd's CA is no certificate")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: etcdName, MinVersion: tls.VersionTLS12}, nil
}

// Storage opens a reader of the stored values, which is a storage.Writer as well, through the API server to the pod of etcd. It
// is good until the cluster is
// closed, also when etcd starts again in between. It is storage.ErrNoAccess if no etcd answers.
func (c *Cluster) Storage() (storage.Reader, error) {
	config, err := c.etcd.tls()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrNoAccess, err)
	}
	tunnel := &etcdTunnel{cluster: c}
	// Not bound to a context of the caller: the connection lives as long as the reader.
	etcd, err := storage.NewEtcd(context.Background(), storage.EtcdConfig{
		Endpoints: []string{fmt.Sprintf("https://%s:%d", etcdName, etcdPort)}, TLS: config, Dial: tunnel.dial,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), accessTimeout)
	defer cancel()
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := etcd.Revision(ctx)
		return err == nil, err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", storage.ErrNoAccess, cmp.Or(tunnel.failure(), err)), etcd.Close())
	}
	return readWriter{c.full.Keep(etcd), etcd}, nil
}

// readWriter is what is read from and written to.
type readWriter struct {
	storage.Reader
	storage.Writer
}

// etcdTunnel leads to the etcd of one of the nodes.
type etcdTunnel struct {
	cluster *Cluster

	mu     sync.Mutex
	last   string // the node that answered last
	failed error  // why none did; nil where one does
}

// dial connects to the first node's etcd that can be reached, beginning with the one that was reached last.
func (t *etcdTunnel) dial(ctx context.Context, _ string) (net.Conn, error) {
	var failed error
	for _, node := range t.order() {
		conn, err := t.try(ctx, "etcd-"+node)
		if err == nil {
			t.note(node, nil)
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	t.note("", failed)
	return nil, failed
}

func (t *etcdTunnel) note(last string, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.failed = last, failed
}

func (t *etcdTunnel) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

func (t *etcdTunnel) try(ctx context.Context, pod string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return forward(ctx, t.cluster.Config(), controlSystem, pod, etcdPort)
}

// order is the nodes, the one that answered last first.
func (t *etcdTunnel) order() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	nodes := slices.Clone(t.cluster.nodes)
	if i := slices.Index(nodes, t.last); i > 0 {
		nodes = slices.Concat(nodes[i:], nodes[:i])
	}
	return nodes
}
