package rewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// Reasons of failures that the server does not know.
const (
	// NotRelabelled: the write was accepted, and the server has put the old entries back.
	NotRelabelled = "NotRelabelled"
	// NotRewritten: the object is still stored at another version, so that relabelling it would make the rewriter the
	// owner of every new default.
	NotRewritten = "NotRewritten"
)

// rebuildTries is how often the patch of one object is built anew because its managedFields changed under it.
const rebuildTries = 5

// Relabel changes the apiVersion of the managedFields entries at the versions in from to that of the version to, and
// nothing else, so that server-side apply goes on when those versions are gone. The version to is the live storage
// version, and the objects were rewritten before.
//
// What fails for one object is in the Result, which is never nil; the error is for what ended the work. As long as a
// version of from is served, its clients make new entries at it.
func (r *Rewriter) Relabel(ctx context.Context, from []string, to string) (*Result, error) {
	w, err := r.start(ctx, to)
	if err == nil {
		err = w.relabel(ctx, from)
	}
	if err != nil {
		return w.result, fmt.Errorf("relabel the managedFields of %s: %w", r.Resource, err)
	}
	return w.result, nil
}

// RewriteAndRelabel does both, with the fewest reviews that a conversion webhook can be asked for, or where the CRD names
// none, with the fewest writes.
//
// Where a webhook converts, an object's entries are relabelled through target, which also rewrites it. If target has new
// defaults, they become part of the bytes as in a Rewrite, and a second write takes them from the rewriter again. That is
// one review a write for every other version that the server holds in its watch cache: two an object where one such
// version is served, and one without new defaults. An empty patch costs four, because the server converts the object to
// the version of every entry, before and after; the same relabelling through the old version costs seven.
//
// Where none does, stale objects are relabelled through a version of from that is still served: always one write, and
// new defaults do not become part of the bytes but show on every read, and the generation stays. Such a write takes away
// from an object that is already stored at target what only target knows: those objects are relabelled through target.
//
// It needs the bytes, which alone tell the objects that are still stored at an old version. Rewrite and then Relabel is
// the other way: it needs neither the bytes nor a served old version.
func (r *Rewriter) RewriteAndRelabel(ctx context.Context, from []string, target string) (*Result, error) {
	w, err := r.start(ctx, target)
	if err == nil && r.Storage == nil {
		err = fmt.Errorf("which objects are still stored at an old version is told by their bytes alone; use Rewrite and then Relabel: %w", storage.ErrNoAccess)
	}
	if err == nil && !hasWebhook(w.crd) {
		w.result.Through, err = servedOf(w.crd, from)
	}
	if err == nil {
		w.rewrites = true
		err = w.relabel(ctx, from)
	}
	if err != nil {
		return w.result, fmt.Errorf("rewrite and relabel %s: %w", r.Resource, err)
	}
	return w.result, nil
}

// servedOf is the newest of some versions that is served.
func servedOf(crd *apiextensionsv1.CustomResourceDefinition, versions []string) (string, error) {
	newest := slices.SortedFunc(slices.Values(versions), func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	for _, v := range newest {
		if serves(crd, v) {
			return v, nil
		}
	}
	return "", fmt.Errorf("none of %s is served any more; use Rewrite and then Relabel", strings.Join(versions, ", "))
}

// relabelling is what is to be asked for one object.
type relabelling struct {
	through string // the version of the request
	body    []byte // a JSON patch
	entries int    // how many entries it changes
	owners  []string
}

func (p *relabelling) relabels() bool { return p != nil && p.entries > 0 }

// relabel goes over all objects that have entries at the versions in from; where it is to rewrite, also over those that
// are not stored at the target, and those of which an interrupted work has left the rewriter an owner.
func (w *work) relabel(ctx context.Context, from []string) error {
	w.tally = true
	w.check = func(it *item, after *Metadata) *Failure { return kept(it, after, from) }
	choose := func(o *seen) (*item, error) {
		m, err := o.metadata()
		if err != nil {
			return nil, err
		}
		countEntries(&w.result.EntriesBefore, m)
		it := &item{namespace: o.namespace, name: o.name, resourceVersion: o.resourceVersion}
		if it.patch, err = w.plan(it, m, o.stored, from); it.patch == nil {
			return nil, err
		}
		if w.stale(o.stored) && !w.rewrites {
			w.result.Failures = append(w.result.Failures, Failure{Namespace: o.namespace, Name: o.name, Reason: NotRewritten,
				Message: "it is still stored at " + o.stored + ": rewrite it before its managedFields are relabelled"})
			return nil, nil
		}
		return it, nil
	}
	return w.run(ctx, choose, func(ctx context.Context, it *item) (*evidence.Response, error) {
		resp, err := w.sendRelabelling(ctx, it, from)
		if err != nil || !w.rewrites {
			return resp, err
		}
		return w.disown(ctx, it, resp)
	})
}

// stale says that an object's bytes are known not to be at the target.
func (w *work) stale(stored string) bool { return stored != "" && stored != w.result.Target }

// plan says what is to be asked for an object; nil where nothing is.
func (w *work) plan(it *item, m *Metadata, stored string, from []string) (*relabelling, error) {
	p := &relabelling{through: w.result.Target, owners: owners(m)}
	ops := []operation{{"test", "/metadata/uid", m.UID}}
	rewrites := w.rewrites && (w.stale(stored) || ownEntry(m) != none)
	if w.stale(stored) && w.result.Through != "" {
		p.through = w.result.Through
		// Whoever writes the object meanwhile stores it at the target, and then this is the wrong way for it.
		ops = append(ops, operation{"test", "/metadata/resourceVersion", it.resourceVersion})
	}
	changes, n, err := relabelEntries(m.ManagedFields, from, w.r.Resource.Group+"/"+w.result.Target)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", it.namespace, it.name, err)
	}
	if n == 0 && !rewrites {
		return nil, nil
	}
	p.entries = n
	p.body, err = json.Marshal(append(ops, changes...))
	return p, err
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// relabelEntries are the operations that change the entries at the versions in from to an apiVersion, each guarded by
// tests, and how many entries that are. Two updates by the same manager would become the same entry, of which the server
// keeps one: they are made one that owns what both owned.
func relabelEntries(entries []Entry, from []string, to string) (ops []operation, n int, err error) {
	var tests, changes, removals []operation
	kept := map[string]int{} // index of the entry that stays, by what will tell entries apart
	for i, e := range entries {
		if e.APIVersion == to {
			kept[e.owner()] = i
		}
	}
	for i, e := range entries {
		if !slices.Contains(from, e.Version()) || e.APIVersion == to {
			continue
		}
		n++
		tests = append(tests, testEntry(i, e)...)
		into, taken := kept[e.owner()]
		if !taken {
			kept[e.owner()] = i
			changes = append(changes, operation{"replace", entryPath(i, "apiVersion"), to})
			continue
		}
		both, err := union(entries[into].Fields, e.Fields)
		if err != nil {
			return nil, 0, fmt.Errorf("join the entries of %s: %w", e.owner(), err)
		}
		tests = append(tests, testEntry(into, entries[into])...)
		tests = append(tests, operation{"test", entryPath(i, "fieldsV1"), e.Fields}, operation{"test", entryPath(into, "fieldsV1"), entries[into].Fields})
		changes = append(changes, operation{"replace", entryPath(into, "fieldsV1"), both})
		removals = append(removals, operation{"remove", entryPath(i, ""), nil})
		entries = slices.Clone(entries)
		entries[into].Fields = both
	}
	slices.Reverse(removals) // from the last on, so that the indexes hold
	return slices.Concat(tests, changes, removals), n, nil
}

func testEntry(i int, e Entry) []operation {
	var ops []operation
	for _, f := range []struct{ name, value string }{
		{"manager", e.Manager}, {"operation", e.Operation}, {"apiVersion", e.APIVersion}, {"subresource", e.Subresource},
	} {
		if f.value != "" {
			ops = append(ops, operation{"test", entryPath(i, f.name), f.value})
		}
	}
	return ops
}

func entryPath(i int, field string) string {
	path := "/metadata/managedFields/" + strconv.Itoa(i)
	if field != "" {
		path += "/" + field
	}
	return path
}

// union is the fieldsV1 of all fields in a and in b.
func union(a, b json.RawMessage) (json.RawMessage, error) {
	var left, right fieldpath.Set
	if err := left.FromJSON(bytes.NewReader(a)); err != nil {
		return nil, err
	}
	if err := right.FromJSON(bytes.NewReader(b)); err != nil {
		return nil, err
	}
	return left.Union(&right).ToJSON()
}

// sendRelabelling sends an object's patch until it has done what it is for.
//
// A failed test of it is 422 without causes, and means that the object is not the one of before: it is read again, and
// the patch built anew. An accepted patch can be without effect: where the server cannot convert the object to the version
// of an entry that came meanwhile, it keeps all entries as they were, and says 200.
func (w *work) sendRelabelling(ctx context.Context, it *item, from []string) (*evidence.Response, error) {
	for try := 1; ; try++ {
		resp, err := w.patch(ctx, it, it.patch.through, evidence.JSONPatch, it.patch.body)
		if err != nil || try == rebuildTries || (resp.Refused() && !testFailed(resp)) {
			return resp, err
		}
		another := testFailed(resp)
		if another {
			if resp, err = w.readAgain(ctx, it); err != nil || resp.Refused() {
				return resp, err
			}
		}
		m, err := metadataIn(resp)
		if err != nil {
			return nil, err
		}
		if !another && oldEntry(m, from) == nil {
			return resp, nil
		}
		next, err := w.planAgain(ctx, m, from)
		if err != nil {
			return nil, err
		}
		if next.patch == nil {
			if another { // somebody else has done it, and this object was not written
				*it = *next
			}
			return resp, nil
		}
		*it = *next
		if err := w.admit(ctx); err != nil {
			return nil, err
		}
	}
}

// testFailed says that a JSON patch was refused because it does not fit the object.
func testFailed(resp *evidence.Response) bool {
	return resp.Status == http.StatusUnprocessableEntity && len(resp.Causes) == 0
}

// readAgain reads the metadata of an object that is not the one of before.
func (w *work) readAgain(ctx context.Context, it *item) (*evidence.Response, error) {
	return w.r.Client.As(evidence.ByProbe).Do(ctx, evidence.Request{Method: http.MethodGet, Accept: acceptMetadata,
		Path: evidence.ObjectPath(w.r.Resource, w.result.Target, it.namespace, it.name)})
}

// oldEntry is an entry that still names a version to be dropped; nil where there is none.
func oldEntry(m *Metadata, from []string) *Entry {
	for i := range m.ManagedFields {
		if slices.Contains(from, m.ManagedFields[i].Version()) {
			return &m.ManagedFields[i]
		}
	}
	return nil
}

// planAgain plans for an object as an answer shows it; without a patch where nothing is left to be done.
func (w *work) planAgain(ctx context.Context, m *Metadata, from []string) (*item, error) {
	now := &item{namespace: m.Namespace, name: m.Name, resourceVersion: m.ResourceVersion}
	stored, err := w.storedVersion(ctx, now)
	if err != nil {
		return nil, err
	}
	now.patch, err = w.plan(now, m, stored, from)
	return now, err
}

// storedVersion is read from the bytes; empty where they cannot be read, or are gone.
func (w *work) storedVersion(ctx context.Context, it *item) (string, error) {
	if w.r.Storage == nil {
		return "", nil
	}
	v, err := w.r.Storage.Get(ctx, w.r.Resource, it.namespace, it.name)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return v.Version(), nil
}
