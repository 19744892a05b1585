package claims

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
)

var webhooks = []claim{
	{"Every read at another version than the stored one asks the webhook", func(b *book) {
		s := b.withWebhook()
		s.bytes("one")
		n, _ := s.reviews(func() { s.get(v1beta1, "one") })
		b.finds(n > 0, "A read by name")
		n, _ = s.reviews(func() { s.list(v1beta1) })
		b.finds(n > 0, "A list")
	}},
	{"A list is converted in one call", func(b *book) {
		s := b.withWebhook()
		n, _ := s.reviews(func() { s.list(v1beta1) })
		b.finds(n == 1, "A list of three objects at another version")
		n, largest := s.reviews(func() {
			s.noting(`[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/note","value":{"type":"string"}}]`)
			s.ready()
		})
		b.finds(n == 1 || largest > 1, "The cache of that version is loaded again, after a change of the CRD")
	}},
	{"An update through the storage version needs no conversion", func(b *book) {
		s := b.withWebhook()
		s.switchStorage()
		s.Create(v1beta1, "new", `{"displayName":"new","replicas":1}`)
		s.ready()
		s.bytes("new")
		n, _ := s.reviews(func() { s.merge(v1beta1, "new", `{"spec":{"replicas":2}}`) })
		b.finds(n == 0, "While another version is served")
		s.noting(unserve(0))
		s.ready()
		n, _ = s.reviews(func() { s.merge(v1beta1, "new", `{"spec":{"replicas":3}}`) })
		b.finds(n == 0, "When no other version is served, and managedFields name the storage version")
		s.Until("one is stored at v1beta1", func() bool {
			s.rewrite("one")
			return s.peek("one").version == v1beta1
		})
		s.bytes("one")
		s.entries("one")
		n, _ = s.reviews(func() { s.merge(v1beta1, "one", `{"spec":{"replicas":3}}`) })
		b.finds(n == 0, "When no other version is served, and managedFields name the old version")
	}},
	{"The webhook can change nothing in metadata", func(b *book) {
		s := b.withWebhook()
		for _, c := range []struct{ fault, when, part string }{
			{"changed-labels", "Labels and annotations", "labels"},
			{"changed-finalizers", "Finalizers", "finalizers"},
			{"changed-name", "The name", "name"},
		} {
			s.fault(c.fault)
			resp := s.get(v1beta1, "one")
			shown := metadata(resp, c.part)
			b.note("  metadata.%s: %s", c.part, shown)
			answered := s.answer("metadata." + c.part)
			s.fault("")
			b.finds(resp.Refused() || shown != answered, c.when)
		}
	}},
	{"What the webhook adds is shown, whatever the schema says", func(b *book) {
		s := b.withWebhook()
		s.fault("undeclared-fields")
		resp := s.get(v1beta1, "one")
		s.Must(resp.Err())
		answered := s.answer("spec")
		s.fault("")
		b.finds(has(json.RawMessage(answered), "undeclared") && has(spec(resp), "undeclared"), "")
	}},
	{"What the webhook answers is validated by the schema", func(b *book) {
		s := b.withWebhook()
		s.fault("wrong-types")
		resp := s.get(v1beta1, "one")
		s.answer("spec")
		s.fault("")
		b.finds(resp.Refused(), "")
	}},
	{"A webhook outage breaks every read", func(b *book) {
		s := b.withWebhook()
		s.fault("down")
		b.finds(s.get(v1beta1, "one").Refused(), "By name, at another version than the stored one")
		b.finds(s.get(v1alpha1, "one").Refused(), "By name, at the stored version")
		b.finds(s.list(v1beta1).Refused(), "A list at another version, that the API server has in its cache")
		s.fault("")
	}},
	{"Nothing can be written during a webhook outage", func(b *book) {
		s := b.withWebhook()
		s.switchStorage()
		s.noting(unserve(0))
		s.ready()
		s.bytes("one")
		s.fault("down")
		b.finds(s.post(v1beta1, "new", `{"displayName":"new"}`).Refused(), "A new object, at the storage version")
		b.finds(s.apply(v1beta1, "one", `{"displayName":"x"}`).Refused(), "A server-side apply of an object that is stored at the old version")
		s.fault("")
	}},
	{"The webhook is got rid of by setting strategy None", func(b *book) {
		s := b.withWebhook()
		b.finds(!s.conversion(`{"strategy":"None"}`).Refused(), "That alone")
		b.finds(!s.conversion(`{"strategy":"None","webhook":null}`).Refused(), "With webhook: null in the same patch")
	}},
	{"Strategy None is refused while objects are stored under another field's name", func(b *book) {
		s := b.withWebhook()
		s.bytes("one")
		resp := s.conversion(`{"strategy":"None","webhook":null}`)
		if !resp.Refused() {
			s.Until("None is in effect", func() bool { return !has(spec(s.Get(v1beta1, "one")), "displayName") })
			s.get(v1beta1, "one")
		}
		b.finds(resp.Refused(), "")
	}},
	{"managedFields are converted with the object", func(b *book) {
		s := b.withWebhook()
		s.Accepted(s.Apply(v1alpha1, "mine", "team", `{"label":"mine"}`), nil)
		s.switchStorage()
		s.rewrite("mine")
		s.bytes("mine")
		b.finds(strings.Contains(s.owned("mine"), "f:displayName"), "")
	}},
}

// conversion is a merge patch of spec.conversion.
func (s *stage) conversion(patch string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodPatch, Path: evidence.DefinitionPath(s.Resource), ContentType: evidence.MergePatch,
		Body: []byte(`{"spec":{"conversion":` + patch + `}}`)})
}

// metadata is a part of an answer's metadata.
func metadata(resp *evidence.Response, part string) string {
	var o struct {
		Metadata map[string]json.RawMessage
	}
	_ = json.Unmarshal(resp.Body, &o)
	if v, there := o.Metadata[part]; there && !resp.Refused() {
		return string(v)
	}
	return "nothing"
}

// owned is what the manager team owns of an object, as its bytes have it.
func (s *stage) owned(name string) string {
	s.Helper()
	v, err := s.Storage.Get(s.Context(), s.Resource, s.Namespace, name)
	s.Must(err)
	var o struct {
		Metadata struct {
			ManagedFields []struct {
				Manager, APIVersion string
				FieldsV1            json.RawMessage
			}
		}
	}
	s.Must(json.Unmarshal(v.Data, &o))
	for _, m := range o.Metadata.ManagedFields {
		if m.Manager == "team" {
			s.book.note("managedFields of %s  team %s %s", name, strings.TrimPrefix(m.APIVersion, s.Resource.Group+"/"), m.FieldsV1)
			return string(m.FieldsV1)
		}
	}
	s.Fatal("team owns nothing of " + name)
	return ""
}
