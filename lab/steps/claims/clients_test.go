package claims

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
)

// deprecate marks v1alpha1.
const deprecate = `[{"op":"add","path":"/spec/versions/0/deprecated","value":true}]`

var clients = []claim{
	{"deprecated: true blocks clients", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		s.noting(deprecate)
		b.finds(s.get(v1alpha1, "one").Refused(), "Reads")
		b.finds(s.post(v1alpha1, "two", `{"size":2}`).Refused(), "Writes")
	}},
	{"A deprecation warning tells which objects are stored at the old version", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.Create(v1beta1, "two", `{"size":2}`)
		s.noting(deprecate)
		s.bytes("one")
		b.finds(len(s.get(v1beta1, "one").Warnings) > 0, "Stored at v1alpha1, read at v1beta1: there is a warning")
		s.bytes("two")
		b.finds(len(s.get(v1alpha1, "two").Warnings) == 0, "Stored at v1beta1, read at v1alpha1: there is none")
	}},
	{"managedFields take care of themselves", func(b *book) {
		s := b.stage(usual)
		s.Accepted(s.Apply(v1alpha1, "one", "team", `{"size":1}`), nil)
		s.switchStorage()
		s.rewrite("one")
		s.bytes("one")
		b.finds(!slices.Contains(s.entries("one"), v1alpha1), "A rewrite makes them name the new version")
		s.trim(`["v1beta1"]`)
		s.noting(remove)
		b.finds(!s.apply(v1beta1, "one", `{"size":1}`).Refused(), "Once the old version is gone, server-side apply still works")
	}},
	{"A merge patch needs good managedFields as much as a server-side apply does", func(b *book) {
		s := b.stage(usual)
		s.Accepted(s.Apply(v1alpha1, "one", "team", `{"size":1}`), nil)
		s.switchStorage()
		s.rewrite("one")
		s.trim(`["v1beta1"]`)
		s.noting(remove)
		s.entries("one")
		b.finds(s.merge(v1beta1, "one", `{"spec":{"size":2}}`).Refused(), "A merge patch is refused")
		b.finds(s.apply(v1beta1, "one", `{"size":2}`).Refused(), "A server-side apply is refused")
	}},
	{"A server-side apply through the new version moves a manager's entry to it", func(b *book) {
		s := b.stage(usual)
		s.Accepted(s.Apply(v1alpha1, "one", "team", `{"size":1}`), nil)
		s.apply(v1beta1, "one", `{"size":1}`)
		b.finds(equal(s.entries("one"), v1beta1), "It applies the fields that it has")
		s = b.stage(usual)
		s.Accepted(s.Apply(v1alpha1, "one", "team", `{"size":1}`), nil)
		s.apply(v1beta1, "one", `{"size":1,"tier":"gold"}`)
		b.finds(equal(s.entries("one"), v1beta1), "It adds a field that only the new version has")
	}},
	{"A request at an unserved version is answered with a Status that says why", func(b *book) {
		s := b.stage(usual)
		s.switchStorage()
		s.noting(unserve(0))
		resp := s.get(v1alpha1, "one")
		s.book.note("  %q", strings.TrimSpace(string(resp.Body)))
		b.finds(resp.Reason != "", "")
	}},
}

// entries are the versions that an object's managedFields name, as its bytes have them.
func (s *stage) entries(name string) []string {
	s.Helper()
	v, err := s.Storage.Get(s.Context(), s.Resource, s.Namespace, name)
	s.Must(err)
	var o struct {
		Metadata struct {
			ManagedFields []struct{ Manager, Operation, APIVersion string }
		}
	}
	s.Must(json.Unmarshal(v.Data, &o))
	var out, told []string
	for _, m := range o.Metadata.ManagedFields {
		version := strings.TrimPrefix(m.APIVersion, s.Resource.Group+"/")
		out, told = append(out, version), append(told, m.Manager+" ("+m.Operation+") "+version)
	}
	s.book.note("managedFields of %s  %s", name, strings.Join(told, ", "))
	return out
}

// remove deletes an object.
func (s *stage) remove(version, name string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodDelete, Path: s.Path(version, name)})
}
