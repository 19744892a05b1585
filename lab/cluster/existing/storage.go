package existing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/crdlab/crdlab/lab/storage"
)

// lookTimeout is how long it may take to find out whether etcd can be read.
const lookTimeout = 20 * time.Second

// Etcd says where a cluster's etcd is, for those who can reach it. Files are in PEM.
type Etcd struct {
	Endpoints         []string
	CAFile            string
	CertFile, KeyFile string // by which this client shows itself
	Prefix            string // of the API server's keys; /registry where empty
}

// check refuses what cannot be used, before anything is asked of anybody.
func (e Etcd) check() error {
	if len(e.Endpoints) == 0 {
		if e.CAFile != "" || e.CertFile != "" || e.KeyFile != "" || e.Prefix != "" {
			return errors.New("the flags --etcd-... say how to read an etcd and not where it is; give --etcd-endpoints, for example https://127.0.0.1:2379")
		}
		return nil
	}
	_, err := e.tls()
	return err
}

// tls is nil where nothing is said of certificates.
func (e Etcd) tls() (*tls.Config, error) {
	if e.CAFile == "" && e.CertFile == "" && e.KeyFile == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		data, err := os.ReadFile(e.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cacert: %w; give the file of etcd's CA", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--etcd-cacert: there is no certificate in %s; give the file of etcd's CA, in PEM", e.CAFile)
		}
	}
	if e.CertFile == "" && e.KeyFile == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-cert and --etcd-key: %w; give both files of a client's certificate for etcd, in PEM", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// open connects, and reads once.
func (e Etcd) open(ctx context.Context) (storage.Reader, error) {
	config, err := e.tls()
	if err != nil {
		return nil, err
	}
	// Not bound to a context of the caller: the connection lives as long as the reader.
	etcd, err := storage.NewEtcd(context.Background(), storage.EtcdConfig{Endpoints: e.Endpoints, TLS: config, Prefix: e.Prefix})
	if err != nil {
		return nil, fmt.Errorf("%w; check --etcd-endpoints and the flags beside it", err)
	}
	if _, err := etcd.Revision(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %s cannot be read: %w; check the flags --etcd-..., or leave them out", strings.Join(e.Endpoints, ","), err), etcd.Close())
	}
	return etcd, nil
}

// Storage opens a reader of the stored values: of the etcd that the options name, or else through etcdctl in the cluster's
// own etcd pod. It is storage.ErrNoAccess, with the reason, where the cluster lets nobody at either. It is good until the
// cluster is closed.
func (c *Cluster) Storage() (storage.Reader, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), lookTimeout, fmt.Errorf("not found within %s", lookTimeout))
	defer cancel()
	open := c.openPod
	if len(c.options.Etcd.Endpoints) > 0 {
		open = c.options.Etcd.open
	}
	from, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return c.full.Keep(from), nil
}
