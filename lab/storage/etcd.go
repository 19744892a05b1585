package storage

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// callTimeout is how long one call to etcd may take. Its client waits for a server that is gone until its context ends.
const callTimeout = 5 * time.Second

// bounded gives a call its time, and an error that says whose time it was.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("etcd has not answered within %s", callTimeout))
}

// failed makes the error of a call, an ErrUnanswered.
func failed(ctx context.Context, what string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%s: %w", what, unanswered{err})
}

// unanswered is an ErrUnanswered, and reads like what caused it.
type unanswered struct{ error }

// Is and Unwrap are for errors.Is.
func (unanswered) Is(target error) bool { return target == ErrUnanswered }
func (u unanswered) Unwrap() error      { return u.error }

// page is how many values one Range request reads: small enough to bound the memory, large enough to be quick.
const page = 500

// EtcdConfig says where an etcd is and how to reach it.
type EtcdConfig struct {
	Endpoints []string
	TLS       *tls.Config
	Prefix    string // of the API server's keys; /registry where empty
	// Dial makes the connection where an endpoint's address alone does not lead to it, such as through a tunnel. It is
	// called again whenever the connection was lost. Where nil, the address is dialled.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Etcd reads stored values through etcd's own client, and puts old ones back.
type Etcd struct {
	layout
	client *clientv3.Client
}

var (
	_ Reader = (*Etcd)(nil)
	_ Writer = (*Etcd)(nil)
)

// NewEtcd connects to an etcd. It returns at once; the first read tells whether etcd is there.
func NewEtcd(ctx context.Context, cfg EtcdConfig) (*Etcd, error) {
	client, err := clientv3.New(clientv3.Config{
		Context:            ctx,
		Endpoints:          cfg.Endpoints,
		TLS:                cfg.TLS,
		DialTimeout:        5 * time.Second,
		DialOptions:        cfg.dialOptions(),
		MaxCallRecvMsgSize: 64 << 20,
		Logger:             zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", strings.Join(cfg.Endpoints, ","), err)
	}
	return &Etcd{newLayout(cfg.Prefix), client}, nil
}

// dialOptions let a tunnel take the place of the address. One that was lost is tried again soon: grpc's own patience grows
// to two minutes.
func (c EtcdConfig) dialOptions() []grpc.DialOption {
	if c.Dial == nil {
		return nil
	}
	retry := backoff.DefaultConfig
	retry.BaseDelay, retry.MaxDelay = 100*time.Millisecond, 2*time.Second
	return []grpc.DialOption{
		grpc.WithContextDialer(c.Dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: 20 * time.Second}),
	}
}

// Close ends the connection and every watch.
func (e *Etcd) Close() error { return e.client.Close() }

// Get reads one object's value.
func (e *Etcd) Get(ctx context.Context, r Resource, namespace, name string) (*Value, error) {
	key := e.object(r, namespace, name)
	ctx, cancel := bounded(ctx)
	defer cancel()
	got, err := e.client.Get(ctx, key)
	if err != nil {
		return nil, failed(ctx, "read "+key+" from etcd", err)
	}
	if len(got.Kvs) == 0 {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	kv := got.Kvs[0]
	return e.value(r, kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision)
}

// Put stores an object's value as it was. What is not a value of the resource, under the key that it has, is refused.
func (e *Etcd) Put(ctx context.Context, r Resource, v *Value) error {
	key := e.object(r, v.Namespace, v.Name)
	of, err := parse(key, e.objects(r), v.Data)
	if err != nil {
		return fmt.Errorf("restore %s: %w", key, err)
	}
	if v.Key != key || !strings.HasPrefix(of.APIVersion, r.Group+"/") {
		return fmt.Errorf("restore %s: the value is of %s, stored under %s; restore only what was read of %s", key, of.APIVersion, v.Key, r)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	if _, err := e.client.Put(ctx, key, string(v.Data)); err != nil {
		return failed(ctx, "write "+key+" to etcd", err)
	}
	return nil
}

// Range reads all values of a resource page by page at one revision.
func (e *Etcd) Range(ctx context.Context, r Resource, each func(*Value) error) (int64, error) {
	prefix := e.objects(r)
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	var revision int64
	for {
		got, err := e.page(ctx, from, end, revision)
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			revision = got.Header.Revision
		}
		for _, kv := range got.Kvs {
			v, err := e.value(r, kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision)
			if err != nil {
				return 0, err
			}
			if err := each(v); err != nil {
				return 0, err
			}
		}
		if !got.More {
			return revision, nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}

func (e *Etcd) page(ctx context.Context, from, end string, revision int64) (*clientv3.GetResponse, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	got, err := e.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
	if err != nil {
		return nil, failed(ctx, "read "+from+" from etcd", err)
	}
	return got, nil
}

// Revision is etcd's newest revision.
func (e *Etcd) Revision(ctx context.Context) (int64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	got, err := e.client.Get(ctx, string(e.layout)+"/", clientv3.WithCountOnly())
	if err != nil {
		return 0, failed(ctx, "read the revision from etcd", err)
	}
	return got.Header.Revision, nil
}

// Progress asks etcd to tell every watch how far it is.
func (e *Etcd) Progress(ctx context.Context) error {
	ctx, cancel := bounded(watchContext(ctx))
	defer cancel()
	if err := e.client.RequestProgress(ctx); err != nil {
		return failed(ctx, "ask etcd for progress", err)
	}
	return nil
}

// watchContext gives all watches and progress requests of this program one stream: etcd's client keeps a stream for
// each set of outgoing metadata, and a progress request reaches the watches of its own stream alone.
func watchContext(ctx context.Context) context.Context { return clientv3.WithRequireLeader(ctx) }

// Watch follows the objects and the CRD from one stream of etcd.
func (e *Etcd) Watch(ctx context.Context, r Resource, after int64) <-chan Batch {
	ctx = watchContext(ctx)
	opts := []clientv3.OpOption{clientv3.WithRev(after + 1), clientv3.WithPrevKV(), clientv3.WithProgressNotify()}
	out := make(chan Batch)
	go func() { // ends with the merged watch, which ends with the context at the latest
		defer close(out)
		// Each returns only when etcd has taken it up: not before it is back, where it is gone.
		objects := e.client.Watch(ctx, e.objects(r), append(opts, clientv3.WithPrefix())...)
		definition := e.client.Watch(ctx, e.definition(r), opts...)
		for b := range e.merge(ctx, r, after, objects, definition) {
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
