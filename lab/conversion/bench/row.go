package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
)

// settle is how long what an accepted write causes beside its answer may take: the conversion of its event for the
// server's cache.
const settle = 100 * time.Millisecond

// healTimeout is how long the CRD may take to be pointed to the webhook again.
const healTimeout = 10 * time.Second

// row is one fault at work.
type row struct {
	*bench
	fault   conversion.Fault
	objects map[string]map[string]any // as they were while all was well, by version and name
	listed  string                    // the resourceVersion of the list at the stored version, from which watches go on
	from    int                       // the place in the log of reviews at which the fault began
	healed  time.Time

	mu    sync.Mutex
	cells []*asked
}

// asked is a cell, and by what its reviews are known.
type asked struct {
	Cell
	object       string    // it is about this one; empty where it is about all of them
	began, ended time.Time // of the request
}

// row asks for every operation under a fault.
//
// What comes first must not change what comes after it. The server keeps all objects of each version in a cache, and a
// write whose event cannot be converted breaks the one of the other version: so the lists come first, while it is whole;
// then what asks for one object, and the writes at the other version, which such a fault refuses; then the watches, whose
// write breaks the cache; at last the writes at the stored version, which need no other.
func (b *bench) row(ctx context.Context, f conversion.Fault) (cells []Cell, err error) {
	r := &row{bench: b, fault: f, objects: map[string]map[string]any{}}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // else it is healed already
			err = errors.Join(err, r.heal(ctx))
		}
	}()
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	for _, at := range []string{Other, Stored} {
		for _, o := range []string{List, ListCached} {
			r.ask(ctx, o, at)
		}
	}
	r.together(ctx, Other, Get, Create, Update, Patch, Apply, Delete)
	r.ask(ctx, Watch, Other)
	r.ask(ctx, Watch, Stored)
	r.together(ctx, Stored, Get, Create, Update, Patch, Apply, Delete)
	pause(ctx, settle+min(f.Delay, b.Patience))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.heal(ctx); err != nil {
		return nil, err
	}
	cells = r.counted()
	return cells, r.tidy(ctx)
}

// name is the object of an operation's own.
func (r *row) name(operation, at string) string { return name(r.fault, operation, at) }

func name(f conversion.Fault, operation, at string) string {
	return prefix + ID(f) + "-" + strings.ToLower(operation) + "-" + at
}

// prepare makes the objects, and remembers how each looks at each version.
func (r *row) prepare(ctx context.Context) error {
	var names []string
	for _, at := range []string{Stored, Other} {
		for _, o := range []string{Get, Watch, Update, Patch, Apply, Delete} {
			names = append(names, r.name(o, at))
		}
	}
	if err := errors.Join(r.renew(ctx), r.healthy(ctx)); err != nil {
		return err
	}
	if err := allOf(names, func(n string) error { return r.create(ctx, n) }); err != nil {
		return err
	}
	if err := r.healthy(ctx); err != nil {
		return err
	}
	err := allOf(append(names, canary), func(n string) error {
		return errors.Join(r.remember(ctx, Stored, n), r.remember(ctx, Other, n))
	})
	if err != nil {
		return err
	}
	return r.quiet(ctx)
}

// remember reads an object at a version while all is well.
func (r *row) remember(ctx context.Context, at, name string) error {
	resp, err := r.Client.Get(ctx, r.object(at, name), nil)
	if err := accepted(resp, err); err != nil {
		return err
	}
	var o map[string]any
	if err := json.Unmarshal(resp.Body, &o); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects[at+" "+name] = o
	return nil
}

// tidy deletes the row's objects, so that the next row's lists are as short. That they may be gone is good.
func (r *row) tidy(ctx context.Context) error {
	if err := r.healthy(ctx); err != nil {
		return err
	}
	resp, err := r.Client.Do(ctx, evidence.Request{Method: http.MethodDelete, Path: r.collection(Stored),
		Query: url.Values{"fieldSelector": {"metadata.name!=" + canary}}})
	return accepted(resp, err)
}

// allOf does something for each of some names at once, and returns the first error of them.
func allOf(names []string, do func(string) error) error {
	var doing errgroup.Group
	for _, n := range names {
		doing.Go(func() error { return do(n) })
	}
	return doing.Wait()
}

// begin switches the fault on, and waits until the server knows.
func (r *row) begin(ctx context.Context) error {
	r.from = r.Webhook.Log().Seq()
	if err := r.switchTo(ctx, r.fault); err != nil || !r.fault.ChangesCRD {
		return err
	}
	// The caches begin anew with the first request, and refuse; a moment later they say why.
	return r.until(ctx, "the server has tried to fill its cache", func() (bool, error) {
		patient, cancel := context.WithTimeout(ctx, r.Patience)
		defer cancel()
		resp, err := r.Client.Get(patient, r.collection(Other), cached)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return err == nil && strings.Contains(resp.Message, "conversion webhook"), nil
	})
}

// heal makes all well again, also where the context has ended.
func (r *row) heal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
	defer cancel()
	r.healed = time.Now()
	return r.switchTo(ctx, conversion.Fault{})
}

func (r *row) switchTo(ctx context.Context, f conversion.Fault) error {
	change := func() error { return r.Webhook.Switch(ctx, r.Client, r.resource, f) }
	if r.fault.ChangesCRD {
		return r.changing(ctx, change)
	}
	return change()
}

// together asks for several operations at a version at once; each is about an object of its own.
func (r *row) together(ctx context.Context, at string, operations ...string) {
	var asking sync.WaitGroup
	for _, o := range operations {
		asking.Go(func() { r.ask(ctx, o, at) })
	}
	asking.Wait()
}

// quiet waits until the webhook has not been asked for a while.
func (b *bench) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, healthyWithin, errors.New("the webhook was asked again and again: who else uses it?"))
	defer cancel()
	for {
		select {
		case <-b.Webhook.Log().Grown():
		case <-time.After(settle):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// counted are the cells in the order of the table, each with its reviews.
func (r *row) counted() []Cell {
	var out []Cell
	log := r.Webhook.Log().Since(r.from)
	for _, o := range Operations {
		for _, at := range []string{Stored, Other} {
			for _, c := range r.cells {
				if c.Operation == o && c.At == at {
					c.Reviews = c.reviews(log, r.Lab.Namespace, r.healed)
					out = append(out, c.Cell)
				}
			}
		}
	}
	return out
}

// reviews counts those that a cell's operation has caused: they are about its object; where it has none, they are those of
// its time, for it was alone then.
func (c *asked) reviews(log []evidence.Conversion, namespace string, until time.Time) int {
	n := 0
	for _, review := range log {
		if c.object == "" {
			if Owns(review) && !review.At.Before(c.began) && !review.At.After(c.ended) {
				n++
			}
			continue
		}
		for _, name := range review.Names {
			if name == namespace+"/"+c.object && review.At.Before(until) {
				n++
			}
		}
	}
	return n
}
