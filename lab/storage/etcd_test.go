package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

var gadgets = storage.Resource{Group: "storage.example.com", Plural: "gadgets"}

const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.storage.example.com"},
"spec":{"group":"storage.example.com","scope":"Namespaced","names":{"kind":"Gadget","plural":"gadgets"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// serve starts a server with a CRD, and returns a client and the stored values.
func serve(t *testing.T) (*evidence.Client, storage.Reader) {
	t.Helper()
	_, client, from := serveOn(t)
	return client, from
}

func serveOn(t *testing.T) (*embedded.Server, *evidence.Client, storage.Reader) {
	t.Helper()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	from, err := c.Storage()
	if err != nil {
		t.Fatal(err)
	}
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	if err != nil {
		t.Fatal(err)
	}
	must(t)(client.Create(t.Context(), evidence.DefinitionsPath, "test", []byte(crd)))
	for { // the definition is served a few milliseconds later
		r, err := client.Get(t.Context(), evidence.CollectionPath(gadgets, "v1", "default"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == http.StatusOK {
			return c, client, from
		}
	}
}

func must(t *testing.T) func(*evidence.Response, error) *evidence.Response {
	return func(r *evidence.Response, err error) *evidence.Response {
		t.Helper()
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func create(t *testing.T, client *evidence.Client, name string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"storage.example.com/v1","kind":"Gadget","metadata":{"name":%q}}`, name)
	must(t)(client.Create(t.Context(), evidence.CollectionPath(gadgets, "v1", "default"), "test", []byte(body)))
}

func TestTheBytesNameTheStoredVersion(t *testing.T) {
	t.Parallel()
	client, from := serve(t)
	create(t, client, "one")
	v, err := from.Get(t.Context(), gadgets, "default", "one")
	if err != nil {
		t.Fatal(err)
	}
	if v.Key != "/registry/storage.example.com/gadgets/default/one" || v.APIVersion != "storage.example.com/v1" || v.Version() != "v1" ||
		v.Namespace != "default" || v.Name != "one" || v.ModRevision == 0 || v.ModRevision != v.CreateRevision {
		t.Errorf("%+v", v)
	}
	if _, err := from.Get(t.Context(), gadgets, "default", "two"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an object that is not there: %v", err)
	}
}

// TestAnOldValueIsPutBackAsItWas: what was read of an object can be stored again, by whoever it was written since; nothing else can.
func TestAnOldValueIsPutBackAsItWas(t *testing.T) {
	t.Parallel()
	client, from := serve(t)
	create(t, client, "one")
	was, err := from.Get(t.Context(), gadgets, "default", "one")
	if err != nil {
		t.Fatal(err)
	}
	path := evidence.ObjectPath(gadgets, "v1", "default", "one")
	must(t)(client.Patch(t.Context(), path, evidence.MergePatch, "test", []byte(`{"metadata":{"labels":{"is":"newer"}}}`)))
	to, can := from.(storage.Writer)
	if !can {
		t.Fatal("the embedded etcd is the lab's own, and was to be a Writer")
	}
	if err := to.Put(t.Context(), gadgets, was); err != nil {
		t.Fatal(err)
	}
	is, err := from.Get(t.Context(), gadgets, "default", "one")
	if err != nil || !bytes.Equal(is.Data, was.Data) || is.ModRevision <= was.ModRevision {
		t.Errorf("%+v, %v", is, err)
	}
	if got := must(t)(client.Get(t.Context(), path, nil)); strings.Contains(string(got.Body), "newer") {
		t.Errorf("the server reads %s", got.Body)
	}

	elsewhere, foreign, encrypted := *was, *was, *was
	elsewhere.Key = "/registry/storage.example.com/others/default/one"
	foreign.Data = bytes.ReplaceAll(was.Data, []byte("storage.example.com/v1"), []byte("other.example.com/v1"))
	encrypted.Data = []byte("k8s:enc:")
	for name, v := range map[string]*storage.Value{"another key": &elsewhere, "another group": &foreign, "no JSON": &encrypted} {
		if err := to.Put(t.Context(), gadgets, v); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
}

func TestCountsAreOfAllObjectsInPages(t *testing.T) {
	t.Parallel()
	client, from := serve(t)
	const n = 1203 // more than two pages
	for i := range n {
		create(t, client, fmt.Sprintf("gadget-%04d", i))
	}
	last := ""
	seen := 0
	if _, err := from.Range(t.Context(), gadgets, func(v *storage.Value) error {
		if v.Name <= last {
			return fmt.Errorf("%s came after %s", v.Name, last)
		}
		last = v.Name
		seen++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	counts, err := storage.Count(t.Context(), from, gadgets)
	if err != nil || counts.Total != n || counts.ByVersion["v1"] != n || seen != n {
		t.Errorf("%d objects were ranged over, and counted as %+v, %v", seen, counts, err)
	}
}

func TestAWatchDeliversEveryChangeOfObjectsAndDefinition(t *testing.T) {
	t.Parallel()
	client, from := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start, err := from.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	batches := from.Watch(ctx, gadgets, start)
	create(t, client, "one")
	path := evidence.ObjectPath(gadgets, "v1", "default", "one")
	must(t)(client.Patch(ctx, path, evidence.MergePatch, "test", []byte(`{"spec":{"a":1}}`)))
	must(t)(client.Delete(ctx, path))
	must(t)(client.Patch(ctx, evidence.DefinitionPath(gadgets), evidence.MergePatch, "test", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
	end, err := from.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var created, changed, deleted, defined int
	for reached := int64(0); reached < end; {
		if err := from.Progress(ctx); err != nil {
			t.Fatal(err)
		}
		b := <-batches
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		reached = b.Revision
		for _, c := range b.Changes {
			switch {
			case c.CRD:
				defined++
			case c.Deleted && c.Was != nil:
				deleted++
			case c.Was == nil:
				created++
			default:
				changed++
			}
		}
	}
	if created != 1 || changed != 1 || deleted != 1 || defined == 0 {
		t.Errorf("created %d, changed %d, deleted %d, definition %d", created, changed, deleted, defined)
	}
}
