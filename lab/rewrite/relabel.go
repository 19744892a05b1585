package rewrite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// Reasons of failures that the server does not know.
const (
	// OwnersChanged: the write was accepted, and afterwards the rewriter owns fields, or somebody owns none any more.
	OwnersChanged = "OwnersChanged"
	// NotRelabelled: the write was accepted, and the server has put the old entries back.
	NotRelabelled = "NotRelabelled"
	// NotRewritten: the object is still stored at another version, so that relabelling it would make the rewriter the
	// owner of every new default.
	NotRewritten = "NotRewritten"
)

// Manager is the name under which a relabelling would own fields, if it did.
const Manager = "crdlab-rewrite"

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

// RewriteAndRelabel does both with one write an object, through a version of from that is still served. It costs a
// conversion webhook the fewest calls, and raises no generation; new defaults of target do not become part of the bytes
// but show on every read. Rewrite and then Relabel is the other way: it needs neither a served old version nor the bytes.
//
// It needs the bytes, because a write through the old version takes away from an object that is already stored at target
// what only target knows: those objects are relabelled through target.
func (r *Rewriter) RewriteAndRelabel(ctx context.Context, from []string, target string) (*Result, error) {
	w, err := r.start(ctx, target)
	if err == nil && r.Storage == nil {
		err = fmt.Errorf("which objects are still stored at an old version is told by their bytes alone; use Rewrite and then Relabel: %w", storage.ErrNoAccess)
	}
	if err == nil {
		w.result.Through, err = r.servedOf(ctx, from)
	}
	if err == nil {
		err = w.relabel(ctx, from)
	}
	if err != nil {
		return w.result, fmt.Errorf("rewrite and relabel %s: %w", r.Resource, err)
	}
	return w.result, nil
}

// servedOf is the newest of some versions that is served.
func (r *Rewriter) servedOf(ctx context.Context, versions []string) (string, error) {
	crd, err := Definition(ctx, r.Client.As(evidence.ByProbe), r.Resource)
	if err != nil {
		return "", err
	}
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

// relabel goes over all objects that have entries at the versions in from; where the result names a version to go
// through, also over those that are not stored at the target.
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
		if w.stale(o.stored) && it.patch.through == w.result.Target {
			w.result.Failures = append(w.result.Failures, Failure{Namespace: o.namespace, Name: o.name, Reason: NotRewritten,
				Message: "it is still stored at " + o.stored + ": rewrite it before its managedFields are relabelled"})
			return nil, nil
		}
		return it, nil
	}
	return w.run(ctx, choose, func(ctx context.Context, it *item) (*evidence.Response, error) {
		return w.sendRelabelling(ctx, it, from)
	})
}

// stale says that an object's bytes are known not to be at the target.
func (w *work) stale(stored string) bool { return stored != "" && stored != w.result.Target }

// plan says what is to be asked for an object; nil where nothing is.
func (w *work) plan(it *item, m *Metadata, stored string, from []string) (*relabelling, error) {
	p := &relabelling{through: w.result.Target, owners: owners(m)}
	ops := []operation{{"test", "/metadata/uid", m.UID}}
	if w.stale(stored) && w.result.Through != "" {
		p.through = w.result.Through
		// Whoever writes the object meanwhile stores it at the target, and then this is the wrong way for it.
		ops = append(ops, operation{"test", "/metadata/resourceVersion", it.resourceVersion})
	}
	changes, n, err := relabelEntries(m.ManagedFields, from, w.r.Resource.Group+"/"+w.result.Target)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", it.namespace, it.name, err)
	}
	if n == 0 && p.through == w.result.Target {
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
		resp, err := w.patch(ctx, it, it.patch.through, Manager, evidence.JSONPatch, it.patch.body)
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

// owner tells an entry apart from others of an object, whatever version it names.
func (e *Entry) owner() string {
	o := e.Manager + " (" + e.Operation
	if e.Subresource != "" {
		o += " of " + e.Subresource
	}
	return o + ")"
}

// owners are those who own fields of an object, each once.
func owners(m *Metadata) []string {
	var out []string
	for _, e := range m.ManagedFields {
		out = append(out, e.owner())
	}
	slices.SortFunc(out, cmp.Compare[string])
	return slices.Compact(out)
}

// kept compares the entries after a write with those before; nil where they are as they are to be.
func kept(it *item, after *Metadata, from []string) *Failure {
	if it.patch == nil {
		return nil // somebody else has done it
	}
	var wrong []string
	now := owners(after)
	for _, o := range it.patch.owners {
		if !slices.Contains(now, o) {
			wrong = append(wrong, o+" owns nothing any more")
		}
	}
	for _, e := range after.ManagedFields {
		if e.Manager == Manager {
			wrong = append(wrong, e.owner()+" has become an owner")
		}
	}
	if wrong != nil {
		return &Failure{Reason: OwnersChanged, Message: strings.Join(wrong, "; ")}
	}
	if e := oldEntry(after, from); e != nil {
		return &Failure{Reason: NotRelabelled, Message: "the server has kept the entry of " + e.owner() + " at " + e.Version() +
			": look for entries at other versions that lack some of the object's fields"}
	}
	return nil
}
