package rewrite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// Load is what a piece of work was for others: for those who watch the objects, and for one who reads one of them all the while.
type Load struct {
	Written     int     `json:"written"` // objects
	Rate        float64 `json:"rate"`    // of writes, a second
	Interrupted bool    `json:"interrupted"`
	Watchers    int     `json:"watchers"` // that were sent everything
	Lost        int     `json:"lost"`     // that were not: the server had forgotten where they were, and they would have to list everything anew
	Events      int     `json:"events"`   // that these watchers together were sent
	Resumed     int     `json:"resumed"`  // watches that the server ended, and that were taken up again
	Reads       int     `json:"reads"`
	MedianMS    float64 `json:"medianMs"`              // of how long a read took
	P99MS       float64 `json:"p99Ms"`                 // 99 of 100 reads took no longer
	MemoryBytes int64   `json:"memoryBytes,omitempty"` // of the API server, at the end; 0 where it does not tell
}

// MegaBytes is the memory for people.
func (l Load) MegaBytes() int64 { return l.MemoryBytes >> 20 }

const (
	fewestReads  = 20                   // of which a median can be told
	betweenReads = 2 * time.Millisecond // a client that has other things to do as well
	caughtUp     = 30 * time.Second     // for watchers to be sent what was written
	metricsPath  = "/metrics"
	memoryMetric = "process_resident_memory_bytes "
)

// Bystanders are clients that have nothing to do with a rewrite, and go on with their own work: some watch all objects, one reads
// one object again and again. None of their requests is recorded.
type Bystanders struct {
	rewriter *Rewriter
	client   *evidence.Client
	reads    string // the path that is read
	version  string // at which the objects are watched, and to be stored
	first    int    // how many were stored at it at first
	told     tally  // the last one
	watchers []*watcher
	resumed  atomic.Int64
	failed   atomic.Pointer[error] // why a watch could not go on
	grown    chan struct{}         // holds a token when events have come
	end      context.CancelFunc
	ended    sync.WaitGroup
}

// watcher is one watch, and its successors.
type watcher struct {
	events atomic.Int64
	lost   atomic.Bool
}

// Bystanders begins to watch the objects, so many times, at the version to which they are to be rewritten. It needs to read the
// bytes. Close ends it.
func (r *Rewriter) Bystanders(ctx context.Context, version, object string, watchers int) (*Bystanders, error) {
	ctx, end := context.WithCancel(ctx)
	b := &Bystanders{rewriter: r, client: r.Client.As(evidence.ByProbe).Unrecorded(), reads: evidence.ObjectPath(r.Resource, version, r.Namespace, object),
		version: version, grown: make(chan struct{}, 1), end: end, told: tally{events: make([]int, watchers)}}
	var err error
	if b.first, err = b.stored(ctx); err != nil {
		end()
		return nil, fmt.Errorf("count %s: %w", r.Resource, err)
	}
	all := evidence.CollectionPath(r.Resource, version, r.Namespace)
	page, err := list(ctx, b.client, all, url.Values{"limit": {"1"}})
	for range watchers {
		if err == nil {
			err = b.watch(ctx, all, page.Metadata.ResourceVersion)
		}
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("watch %s: %w", r.Resource, err)
	}
	return b, nil
}

// watch begins one watch. Like every informer, it goes on where it was when the server ends it, as it does to watchers that are
// too slow for it.
func (b *Bystanders) watch(ctx context.Context, path, after string) error {
	w, err := b.open(ctx, path, after)
	if err != nil {
		return err
	}
	one := new(watcher)
	b.watchers = append(b.watchers, one)
	b.ended.Go(func() { // ends with the context, or where the watch cannot be taken up again
		for err == nil {
			for e := range w.Events {
				var object struct {
					Metadata struct{ ResourceVersion string }
				}
				err := json.Unmarshal(e.Object, &object)
				if err != nil || e.Type == "ERROR" { // the place is not in the server's memory any more
					one.lost.Store(true)
					b.tell()
					return
				}
				after = object.Metadata.ResourceVersion
				one.events.Add(1)
				b.tell()
			}
			if ctx.Err() != nil {
				return
			}
			b.resumed.Add(1)
			w, err = b.open(ctx, path, after)
		}
		if ctx.Err() == nil {
			b.fail(err)
		}
	})
	return nil
}

// open asks for a watch; a server that has just changed the CRD may ask to wait.
func (b *Bystanders) open(ctx context.Context, path, after string) (*evidence.Watch, error) {
	var wait patience
	for {
		w, err := b.client.Watch(ctx, path, url.Values{"resourceVersion": {after}})
		if err != nil {
			return nil, err
		}
		if delay, asked := askedToWait(&w.Response); asked && wait.allows(delay) {
			if err := sleep(ctx, delay); err != nil {
				return nil, err
			}
			continue
		}
		return w, w.Err()
	}
}

// tell wakes who waits for events.
func (b *Bystanders) tell() {
	select {
	case b.grown <- struct{}{}:
	default:
	}
}

// fail notes why a watch could not go on; the first reason is kept.
func (b *Bystanders) fail(err error) {
	b.failed.CompareAndSwap(nil, &err)
	b.tell()
}

// Close ends the watches.
func (b *Bystanders) Close() {
	b.end()
	b.ended.Wait()
}

// During does a work to its end, and tells what it was for the bystanders. Where it was interrupted, that is in the Load; any
// other error of it is returned. What a killed work had sent, and the server did later, counts for the next one.
func (b *Bystanders) During(ctx context.Context, work func(context.Context) error) (*Load, error) {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	took := make(chan []time.Duration, 1)
	go func() { took <- b.read(reading) }() // ends with the context, when it has read often enough
	began := time.Now()
	err := work(ctx)
	lasted := time.Since(began).Seconds()
	stop()
	reads := <-took
	interrupted := errors.Is(err, ErrInterrupted)
	if err != nil && !interrupted {
		return nil, err
	}
	before := b.told
	if err := b.catchUp(ctx); err != nil {
		return nil, err
	}
	load := b.since(before)
	load.Interrupted, load.Rate = interrupted, float64(load.Written)/lasted
	load.measure(reads)
	load.MemoryBytes, err = b.memory(ctx)
	return load, err
}

// All is what everything since the beginning was for the bystanders, as far as it can be summed up.
func (b *Bystanders) All() *Load { return b.since(tally{events: make([]int, len(b.watchers))}) }

// tally is what was counted at a moment.
type tally struct {
	written int // objects that are stored at the version, beyond those that were at first
	events  []int
	resumed int
}

// since is what has been counted beyond another tally. A watcher that has lost its place is not counted.
func (b *Bystanders) since(before tally) *Load {
	load := &Load{Written: b.told.written - before.written, Resumed: b.told.resumed - before.resumed}
	for i, n := range b.told.events {
		if b.watchers[i].lost.Load() {
			load.Lost++
			continue
		}
		load.Watchers++
		load.Events += n - before.events[i]
	}
	return load
}

// ErrInterrupted is the cause of a context that ends a work in its middle, as its program's end would.
var ErrInterrupted = errors.New("the work was interrupted")

// stored counts the objects at the version, by their bytes.
func (b *Bystanders) stored(ctx context.Context) (int, error) {
	c, err := storage.Count(ctx, b.rewriter.Storage, b.rewriter.Resource)
	return c.ByVersion[b.version], err
}

// catchUp waits until every watcher was sent what was written, and counts.
func (b *Bystanders) catchUp(ctx context.Context) error {
	now, err := b.stored(ctx)
	if err != nil {
		return err
	}
	written := now - b.first
	ctx, cancel := context.WithTimeoutCause(ctx, caughtUp, fmt.Errorf("the watches of %s were not sent all %d writes within %s", b.rewriter.Resource, written, caughtUp))
	defer cancel()
	for {
		at, behind := tally{written: written, resumed: int(b.resumed.Load())}, false
		for _, w := range b.watchers {
			n := int(w.events.Load())
			at.events = append(at.events, n)
			behind = behind || n < written && !w.lost.Load()
		}
		if !behind {
			b.told = at
			return nil
		}
		if why := b.failed.Load(); why != nil {
			return *why
		}
		select {
		case <-b.grown:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read reads one object again and again until the context ends, and tells how long each answer took.
func (b *Bystanders) read(ctx context.Context) []time.Duration {
	var took []time.Duration
	for ctx.Err() == nil || len(took) < fewestReads {
		began := time.Now()
		r, err := b.client.Get(context.WithoutCancel(ctx), b.reads, nil)
		if err != nil || r.Refused() {
			return took
		}
		took = append(took, time.Since(began))
		_ = sleep(ctx, betweenReads) // its end is looked for above
	}
	return took
}

func (l *Load) measure(took []time.Duration) {
	l.Reads = len(took)
	if l.Reads == 0 {
		return
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	l.MedianMS, l.P99MS = ms(took[len(took)/2]), ms(took[len(took)*99/100])
}

// memory asks the API server how much memory it has; 0 where it does not tell.
func (b *Bystanders) memory(ctx context.Context) (int64, error) {
	r, err := b.client.Do(ctx, evidence.Request{Method: http.MethodGet, Path: metricsPath, Accept: "text/plain"})
	if err != nil || r.Refused() {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(r.Body))
	for lines.Scan() {
		if value, is := strings.CutPrefix(lines.Text(), memoryMetric); is {
			n, err := strconv.ParseFloat(value, 64)
			return int64(n), err
		}
	}
	return 0, nil
}
