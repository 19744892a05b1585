package rewrite

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
)

// OwnersChanged is the reason of a failure that the server does not know: the write was accepted, and afterwards the
// rewriter owns fields, or somebody owns none any more.
const OwnersChanged = "OwnersChanged"

// Manager is the name under which a rewrite or a relabelling owns fields, until it has given them up.
const Manager = "crdlab-rewrite"

// none is the index of an entry that is not there.
const none = -1

// ownEntry is the index of an entry of the rewriter's own.
func ownEntry(m *Metadata) int {
	return slices.IndexFunc(m.ManagedFields, func(e Entry) bool { return e.Manager == Manager })
}

// disown takes away the rewriter's own entry, if the answer to a write shows one.
//
// A write through the target puts the target's new defaults into the bytes, and the server makes the writer their owner,
// unless it cannot convert the object to the version of an entry: then it leaves all entries alone. Whoever applies
// another value would be in conflict with the rewriter. Without the entry the defaults stay, and nobody owns them; the
// server does not put it back, since they are in the bytes now.
func (w *work) disown(ctx context.Context, it *item, resp *evidence.Response) (*evidence.Response, error) {
	for try := 1; !resp.Refused(); try++ {
		m, err := metadataIn(resp)
		if err != nil {
			return nil, err
		}
		i := ownEntry(m)
		if i == none || try > rebuildTries {
			break
		}
		if err := w.admit(ctx); err != nil {
			return nil, err
		}
		// A failed test means that the entries are not those of the answer any more: they are read again.
		body, err := json.Marshal(slices.Concat([]operation{{"test", "/metadata/uid", m.UID}}, testEntry(i, m.ManagedFields[i]),
			[]operation{{"remove", entryPath(i, ""), nil}}))
		if err != nil {
			return nil, err
		}
		resp, err = w.patch(ctx, it, w.result.Target, evidence.JSONPatch, body)
		if err == nil && testFailed(resp) {
			resp, err = w.readAgain(ctx, it)
		}
		if err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// owner tells an entry apart from others of an object, whatever version it names.
func (e *Entry) owner() string {
	o := e.Manager + " (" + e.Operation
	if e.Subresource != "" {
		o += " of " + e.Subresource
	}
	return o + ")"
}

// owners are those who own fields of an object, each once; the rewriter is not counted.
func owners(m *Metadata) []string {
	var out []string
	for _, e := range m.ManagedFields {
		if e.Manager != Manager {
			out = append(out, e.owner())
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return slices.Compact(out)
}

// disowned says that the rewriter owns something after a write; nil where it does not.
func disowned(_ *item, after *Metadata) *Failure {
	i := ownEntry(after)
	if i == none {
		return nil
	}
	return &Failure{Reason: OwnersChanged, Message: after.ManagedFields[i].owner() + " has become an owner"}
}

// kept compares the entries after a relabelling with those before; nil where they are as they are to be.
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
	if f := disowned(it, after); f != nil {
		wrong = append(wrong, f.Message)
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
