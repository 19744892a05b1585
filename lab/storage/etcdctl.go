package storage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcdctl reads stored values through the program etcdctl, where that alone gets to etcd: in etcd's own pod, with the
// certificates there.
type Etcdctl struct {
	layout
	run Run

	mu      sync.Mutex
	watches map[*ctlWatch]bool // those that are open

	ended context.Context // by Close
	end   context.CancelFunc
}

// Run runs etcdctl with arguments, beside those by which it finds etcd, until it ends or the context does. An error has in
// it what etcdctl complained of.
type Run func(ctx context.Context, arguments []string, in io.Reader, out io.Writer) error

var _ Reader = (*Etcdctl)(nil)

// NewEtcdctl makes a reader; prefix is that of the API server's keys, /registry where empty. The first read tells whether
// etcd is there.
func NewEtcdctl(run Run, prefix string) *Etcdctl {
	e := &Etcdctl{layout: newLayout(prefix), run: run, watches: map[*ctlWatch]bool{}}
	e.ended, e.end = context.WithCancel(context.Background())
	return e
}

// Close ends every watch.
func (e *Etcdctl) Close() error {
	e.end()
	return nil
}

// get runs etcdctl get, once.
func (e *Etcdctl) get(ctx context.Context, key string, more ...string) (*clientv3.GetResponse, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var out bytes.Buffer
	if err := e.run(ctx, append([]string{"get", "-w", "json", key}, more...), nil, &out); err != nil {
		return nil, failed(ctx, "read "+key+" with etcdctl", err)
	}
	got := &clientv3.GetResponse{}
	if err := json.Unmarshal(out.Bytes(), got); err != nil || got.Header == nil {
		return nil, fmt.Errorf("read %s with etcdctl: it did not answer in JSON: %.200q", key, out.String())
	}
	return got, nil
}

// Get reads one object's value.
func (e *Etcdctl) Get(ctx context.Context, r Resource, namespace, name string) (*Value, error) {
	key := e.object(r, namespace, name)
	got, err := e.get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(got.Kvs) == 0 {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	kv := got.Kvs[0]
	return e.value(r, kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision)
}

// Range reads all values of a resource page by page at one revision. A page begins with the last key of the one before:
// the next possible key ends in a zero byte, which no argument of a program can have.
func (e *Etcdctl) Range(ctx context.Context, r Resource, each func(*Value) error) (int64, error) {
	prefix := e.objects(r)
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	var revision int64
	for {
		got, err := e.get(ctx, from, end, "--limit", strconv.Itoa(page+1), "--rev", strconv.FormatInt(revision, 10))
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			revision = got.Header.Revision
		}
		for _, kv := range got.Kvs {
			if string(kv.Key) == from {
				continue
			}
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
		from = string(got.Kvs[len(got.Kvs)-1].Key)
	}
}

// Revision is etcd's newest revision.
func (e *Etcdctl) Revision(ctx context.Context) (int64, error) {
	got, err := e.get(ctx, string(e.layout)+"/") // under which nothing is stored: the header alone is of interest
	if err != nil {
		return 0, err
	}
	return got.Header.Revision, nil
}

// Progress asks etcd to tell every watch how far it is.
func (e *Etcdctl) Progress(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watches {
		select {
		case w.ask <- "progress\n":
		default: // one that is not read yet is asked already
		}
	}
	return nil
}

// Watch follows the objects and the CRD, each by an etcdctl of its own, so that what one says of its progress holds for
// what it has said before.
func (e *Etcdctl) Watch(ctx context.Context, r Resource, after int64) <-chan Batch {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(e.ended, cancel)
	rev := " --prev-kv --rev=" + strconv.FormatInt(after+1, 10) + " "
	objects, definition := newCtlWatch("watch --prefix"+rev+e.objects(r)), newCtlWatch("watch"+rev+e.definition(r))
	e.mu.Lock()
	e.watches[objects], e.watches[definition] = true, true
	e.mu.Unlock()
	var both sync.WaitGroup
	for _, w := range []*ctlWatch{objects, definition} {
		both.Go(func() {
			w.follow(ctx, e.run)
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.watches, w)
		})
	}
	batches := e.merge(ctx, r, after, objects.responses, definition.responses)
	out := make(chan Batch)
	go func() { // ends with the merged watch, and ends what that was made of
		defer close(out)
		defer both.Wait()
		defer cancel()
		defer detach()
		for b := range batches {
			if b.Err != nil && e.ended.Err() == nil {
				if why := errors.Join(objects.why(), definition.why()); why != nil {
					b.Err = fmt.Errorf("the watch of etcd ended: %w", why)
				}
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// ctlWatch is one etcdctl watch. It is the interactive one, which takes what is to be watched from its standard input: it
// can be asked for its progress, and it ends in the pod when that input does, while another would stay there until the
// next event.
type ctlWatch struct {
	ask       chan string
	responses chan clientv3.WatchResponse

	mu     sync.Mutex
	failed error
}

func newCtlWatch(command string) *ctlWatch {
	w := &ctlWatch{ask: make(chan string, 2), responses: make(chan clientv3.WatchResponse)}
	w.ask <- command + "\n"
	return w
}

func (w *ctlWatch) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// follow runs etcdctl until it ends or the context does.
func (w *ctlWatch) follow(ctx context.Context, run Run) {
	defer close(w.responses)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, asked := io.Pipe()
	said, out := io.Pipe()
	var running sync.WaitGroup
	running.Go(func() {
		err := run(ctx, []string{"watch", "-i", "-w", "json"}, in, out)
		if ctx.Err() == nil {
			w.mu.Lock()
			w.failed = err
			w.mu.Unlock()
		}
		in.Close()
		out.CloseWithError(err)
		cancel()
	})
	running.Go(func() {
		defer asked.Close()
		for {
			select {
			case line := <-w.ask:
				if _, err := io.WriteString(asked, line); err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	w.read(ctx, said)
	cancel()
	said.Close()
	running.Wait()
}

// read delivers what etcdctl prints: a line of JSON for each answer, and for each progress a line of words before it.
func (w *ctlWatch) read(ctx context.Context, said io.Reader) {
	for lines := bufio.NewReaderSize(said, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if line[0] != '{' {
			continue
		}
		var got clientv3.WatchResponse
		if err := json.Unmarshal(line, &got); err != nil {
			w.mu.Lock()
			w.failed = fmt.Errorf("read what etcdctl printed: %w", err)
			w.mu.Unlock()
			return
		}
		select {
		case w.responses <- got:
		case <-ctx.Done():
			return
		}
	}
}
