package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
)

// The queries of the lists.
var (
	page   = url.Values{"limit": {"500"}}
	cached = url.Values{"resourceVersion": {"0"}}
)

// replicas is what the writes ask for that change something.
const replicas = 2

// ask asks for an operation at a version, and fills in its cell.
func (r *row) ask(ctx context.Context, operation, at string) {
	c := &asked{Cell: Cell{Fault: ID(r.fault), Operation: operation, At: at}}
	if operation != List && operation != ListCached {
		c.object = r.name(operation, at)
	}
	patient, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	c.began = time.Now()
	if operation == Watch {
		r.watch(patient, c)
	} else {
		resp, err := r.Client.Do(patient, r.request(operation, at, c.object))
		c.Status, c.Answer = r.answer(patient, c, resp, err)
		c.DurationMS = milliseconds(time.Since(c.began))
	}
	c.ended = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells = append(r.cells, c)
}

// request is what is sent for an operation.
func (r *row) request(operation, at, name string) evidence.Request {
	q := evidence.Request{Method: http.MethodGet, Path: r.object(at, name)}
	owned := url.Values{"fieldManager": {manager}}
	switch operation {
	case List:
		q.Path, q.Query = r.collection(at), page
	case ListCached:
		q.Path, q.Query = r.collection(at), cached
	case Create:
		q.Method, q.Path, q.Query, q.ContentType = http.MethodPost, r.collection(at), owned, evidence.JSON
		q.Body = encoded(r.widget(at, name))
	case Update:
		q.Method, q.Query, q.ContentType = http.MethodPut, owned, evidence.JSON
		q.Body = encoded(r.objects[at+" "+name])
	case Patch:
		q.Method, q.Query, q.ContentType = http.MethodPatch, owned, evidence.MergePatch
		q.Body = encoded(map[string]any{"spec": map[string]any{"replicas": replicas}})
	case Apply:
		q.Method, q.ContentType = http.MethodPatch, evidence.ApplyPatch
		q.Query = url.Values{"fieldManager": {manager + "-apply"}, "force": {"true"}}
		o := r.widget(at, name)
		o["spec"] = map[string]any{"replicas": replicas}
		q.Body = encoded(o)
	case Delete:
		q.Method = http.MethodDelete
	}
	return q
}

// encoded is JSON of what was JSON before, or could be.
func encoded(o any) []byte {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("encode %v: %v", o, err)) // maps of texts and numbers alone
	}
	return raw
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
