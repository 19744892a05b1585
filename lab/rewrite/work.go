package rewrite

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
)

const (
	conflictTries = 20 // of one object; the server has repeated a patch by itself before it says 409
	answerTries   = 4  // of one request that gets no answer, although the server gives others one
	reportEvery   = 50 * time.Millisecond
)

// item is one object to be written, and what is remembered of it: a rewrite holds some hundred bytes an object.
type item struct {
	namespace, name string
	resourceVersion string // as of when it was listed
	patch           *relabelling
}

// sender sends the request that one object needs.
type sender func(context.Context, *item) (*evidence.Response, error)

// work is a rewrite or a relabelling on its way.
type work struct {
	r     *Rewriter
	began time.Time
	crd   *apiextensionsv1.CustomResourceDefinition // as it was at the start
	send  sender
	tally bool // count the managedFields entries by version
	// rewrites says that a relabelling is a rewrite as well.
	rewrites bool
	// check looks at the metadata in the answer to a write that was accepted, and says what is wrong. May be nil.
	check func(*item, *Metadata) *Failure

	pace  *pace
	limit *rate.Limiter

	mu     sync.Mutex // guards what is below
	result *Result
	meter  meter
	outage *outage // nil while the server answers
}

// start makes the preflight of a work. Its result is never nil.
func (r *Rewriter) start(ctx context.Context, target string) (*work, error) {
	w := &work{r: r, began: time.Now(), result: &Result{Target: target}, pace: newPace(r.Workers)}
	w.meter.start(0, 0)
	crd, err := Definition(ctx, r.Client.As(evidence.ByProbe), r.Resource)
	if err != nil {
		return w, err
	}
	w.crd, w.result.Guard = crd, guardOf(crd)
	return w, ready(crd, target)
}

// run finds what is to be done, does it, and counts again.
func (w *work) run(ctx context.Context, choose func(*seen) (*item, error), send sender) error {
	items, err := w.choose(ctx, choose)
	if err != nil {
		return err
	}
	w.send = send
	w.limit = rate.NewLimiter(rate.Inf, 1)
	if w.r.QPS > 0 {
		w.limit.SetLimit(rate.Limit(w.r.QPS))
	}
	err = w.all(ctx, items)
	slices.SortFunc(w.result.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if err == nil {
		err = w.recount(ctx)
	}
	w.result.DurationMS = float64(time.Since(w.began).Microseconds()) / 1000
	w.finish()
	return err
}

// choose finds the objects that are to be written.
func (w *work) choose(ctx context.Context, choose func(*seen) (*item, error)) (items []item, err error) {
	err = w.persist(ctx, func() error {
		items = nil
		w.result.EntriesBefore, w.result.Failures = nil, nil
		before, size, err := w.r.each(ctx, w.result.Target, func(o *seen) error {
			it, err := choose(o)
			if it != nil {
				items = append(items, *it)
			}
			return err
		})
		w.result.Before = before
		w.meter.start(len(items), size)
		return err
	})
	return items, err
}

// recount counts again after the last write: from the bytes, and where they cannot be read at least the entries.
func (w *work) recount(ctx context.Context) error {
	if w.r.Storage == nil && !w.tally {
		return nil
	}
	return w.persist(ctx, func() error {
		w.result.EntriesAfter = nil
		after, size, err := w.r.each(ctx, w.result.Target, func(o *seen) error {
			if !w.tally {
				return nil
			}
			m, err := o.metadata()
			if err != nil {
				return err
			}
			countEntries(&w.result.EntriesAfter, m)
			return nil
		})
		w.result.After, w.meter.bytesAfter = after, size
		return err
	})
}

// countEntries adds an object's managedFields entries to a count by version.
func countEntries(to *map[string]int, m *Metadata) {
	if *to == nil {
		*to = map[string]int{}
	}
	for _, e := range m.ManagedFields {
		(*to)[e.Version()]++
	}
}

// all writes the objects, and returns when no write is under way any more: when all are done, or soon after the context
// has ended, or something has come up that ends the work.
func (w *work) all(ctx context.Context, items []item) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var running sync.WaitGroup
	defer running.Wait()
	for i := range items {
		if err := w.pace.acquire(ctx); err != nil {
			return err
		}
		running.Go(func() {
			defer w.pace.release()
			if err := w.one(ctx, &items[i]); err != nil {
				end(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// admit waits for the gate and for the limit of writes a second.
func (w *work) admit(ctx context.Context) error {
	if w.r.Gate != nil {
		if err := w.r.Gate(ctx); err != nil {
			return err
		}
	}
	return w.limit.Wait(ctx)
}

// one sends an object's request until it has a final answer, and settles it. The error is for what ends the whole work.
func (w *work) one(ctx context.Context, it *item) error {
	var wait patience
	for conflicts, unanswered := 0, 0; ; {
		if w.admit(ctx) != nil {
			return nil
		}
		sent := time.Now()
		resp, err := w.send(ctx, it)
		w.pace.answered(time.Since(sent), resp != nil && resp.Status == http.StatusTooManyRequests)
		if err == nil {
			err = fromGateway(resp)
		}
		var delay time.Duration
		switch {
		case err != nil && stopped(ctx, err):
			return nil
		case err != nil:
			if unanswered++; unanswered == answerTries {
				w.fail(it, Failure{Reason: "NoAnswer", Message: err.Error()})
				return nil
			}
			if err := w.sitOut(ctx, err); err != nil {
				return err
			}
		case resp.Status == http.StatusUnauthorized:
			return resp.Err() // so it would be for every object
		case resp.Status == http.StatusConflict && conflicts < conflictTries:
			conflicts++
			w.conflict()
		default:
			asked := false
			if delay, asked = askedToWait(resp); !asked || !wait.allows(delay) {
				w.settle(it, resp)
				return nil
			}
			w.waiting("the server has answered " + strconv.Itoa(resp.Status) + ", and is asked again in " + delay.String())
		}
		if sleep(ctx, delay) != nil {
			return nil
		}
	}
}

// settle counts the final answer for an object.
func (w *work) settle(it *item, resp *evidence.Response) {
	if absent(resp) {
		w.done(func(r *Result) { r.Gone++ })
		return
	}
	if resp.Refused() {
		w.fail(it, Failure{Status: resp.Status, Reason: resp.Reason, Message: resp.Message})
		return
	}
	m, err := metadataIn(resp)
	if err != nil {
		w.fail(it, Failure{Status: resp.Status, Reason: "Unreadable", Message: err.Error()})
		return
	}
	if w.check != nil {
		if wrong := w.check(it, m); wrong != nil {
			wrong.Status = resp.Status
			w.fail(it, *wrong)
			return
		}
	}
	w.done(func(r *Result) {
		if m.ResourceVersion == it.resourceVersion {
			r.Unchanged++
			return
		}
		r.Written++
		if it.patch.relabels() {
			r.Relabelled++
		}
	})
}

func (w *work) fail(it *item, f Failure) {
	f.Namespace, f.Name = it.namespace, it.name
	w.done(func(r *Result) { r.Failures = append(r.Failures, f) })
}

func (w *work) conflict() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Conflicts++
}

// done counts one object, and reports from time to time.
func (w *work) done(count func(*Result)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count(w.result)
	w.meter.done++
	if w.outage == nil {
		w.meter.waiting = ""
	}
	if w.meter.due() {
		w.report()
	}
}

func (w *work) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meter.finished, w.meter.waiting = true, ""
	w.report()
}

// waiting tells what is waited for; nothing where it is empty.
func (w *work) waiting(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.meter.waiting != what {
		w.meter.waiting = what
		w.report()
	}
}

// report tells how far the work is; the lock is held, so that reports come one at a time and in their order.
func (w *work) report() {
	if w.r.Progress == nil {
		return
	}
	p := w.meter.progress()
	p.Failed, p.Conflicts, p.Workers = len(w.result.Failures), w.result.Conflicts, w.pace.workers()
	w.r.Progress(p)
}

// meter measures how fast the work goes.
type meter struct {
	done, total             int
	bytesBefore, bytesAfter int64
	waiting                 string // for what, at the moment
	finished                bool
	reports                 []sample // of the last second or so
}

type sample struct {
	at   time.Time
	done int
}

func (m *meter) start(total int, size int64) {
	m.done, m.total, m.bytesBefore = 0, total, size
	m.reports = []sample{{at: time.Now()}}
}

func (m *meter) due() bool { return time.Since(m.reports[len(m.reports)-1].at) >= reportEvery }

func (m *meter) progress() Progress {
	now := time.Now()
	for len(m.reports) > 1 && now.Sub(m.reports[0].at) > time.Second {
		m.reports = m.reports[1:]
	}
	p := Progress{Done: m.done, Total: m.total, BytesBefore: m.bytesBefore, BytesAfter: m.bytesAfter,
		Waiting: m.waiting, Finished: m.finished}
	first := m.reports[0]
	if took := now.Sub(first.at).Seconds(); took > 0 {
		p.Rate = float64(m.done-first.done) / took
	}
	if p.Rate > 0 {
		p.Left = time.Duration(float64(m.total-m.done) / p.Rate * float64(time.Second))
	}
	m.reports = append(m.reports, sample{now, m.done})
	return p
}
