package claims

import (
	"encoding/json"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

var reading = []claim{
	{"kubectl get -o yaml shows the stored version", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		preferred := s.preferred()
		seen := s.get(preferred, "one")
		b.finds(shown(seen) == s.bytes("one").version, "")
	}},
	{"Reading at another version converts what is stored", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		before := s.bytes("one")
		s.get(v1beta1, "one")
		b.finds(s.bytes("one").version != before.version, "")
	}},
	{"Defaults of the new version appear on old objects when they are read at it", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		seen := s.get(v1beta1, "one")
		s.bytes("one")
		b.finds(has(spec(seen), "tier"), "While v1alpha1 is the storage version")
		s.switchStorage()
		seen = s.get(v1beta1, "one")
		s.bytes("one")
		b.finds(has(spec(seen), "tier"), "When v1beta1 is the storage version")
	}},
	{"A default that is added to a schema shows on objects that are there already", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		s.noting(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/default","value":"red"}]`)
		s.Until("the schema is in effect", func() bool { return has(spec(s.Get(v1alpha1, "one")), "color") })
		b.finds(has(spec(s.get(v1alpha1, "one")), "color"), "Added to the version that they are stored at")
		s = b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		s.noting(`[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/color/default","value":"red"}]`)
		b.finds(has(spec(s.get(v1beta1, "one")), "color"), "Added to another version")
	}},
	{"Strategy None keeps fields that the other version does not know", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1,"old":"dear"}`)
		b.finds(has(spec(s.get(v1beta1, "one")), "old"), "Read at the other version")
		s.merge(v1beta1, "one", `{"spec":{"size":2}}`)
		b.finds(s.bytes("one").has("old"), "In the bytes, after a write through the other version")
		s = b.stage(scene.Widgets(`{type: object, properties: {size: {type: integer}, old: {type: string}}}`,
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer}}}`))
		s.Create(v1alpha1, "one", `{"size":1,"old":"dear"}`)
		s.merge(v1beta1, "one", `{"spec":{"size":2}}`)
		b.finds(s.bytes("one").has("old"), "The same, where the other version's spec has x-kubernetes-preserve-unknown-fields")
	}},
	{"Versions whose schemas do not fit are refused with strategy None", func(b *book) {
		s := b.stage(usual)
		resp := s.crd(`[{"op":"replace","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size/type","value":"string"},` +
			`{"op":"remove","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size/maximum"}]`)
		b.finds(resp.Refused() || len(resp.Warnings) > 0, "")
	}},
	{"An object is validated by the schema of the storage version", func(b *book) {
		s := b.stage(usual)
		resp := s.post(v1beta1, "large", `{"size":2000}`)
		b.finds(!resp.Refused(), "v1alpha1 is the storage version and has no maximum: written through v1beta1, whose maximum is 1000")
	}},
	{"Objects stored at a version that is no longer served cannot be read", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		s.switchStorage()
		s.noting(unserve(0))
		s.bytes("one")
		s.get(v1alpha1, "one")
		b.finds(s.get(v1beta1, "one").Refused(), "")
	}},
}

// preferred is the version that kubectl asks for where none is named: discovery tells.
func (s *stage) preferred() string {
	s.Helper()
	resp := s.ask(evidence.Request{Method: http.MethodGet, Path: "/apis/" + s.Resource.Group})
	s.Must(resp.Err())
	var group struct {
		PreferredVersion struct{ Version string }
	}
	s.Must(json.Unmarshal(resp.Body, &group))
	s.book.note("  preferredVersion %s", group.PreferredVersion.Version)
	return group.PreferredVersion.Version
}
