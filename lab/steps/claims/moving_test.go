package claims

import (
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// stale sets up an object that is stored at v1alpha1 while v1beta1 is the storage version.
func (b *book) stale(spec string) *stage {
	b.Helper()
	s := b.stage(usual)
	s.Create(v1alpha1, "one", spec)
	s.switchStorage()
	return s
}

var moving = []claim{
	{"Changing the storage version rewrites objects", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		before := s.peek("one")
		s.switchStorage()
		s.book.note("PATCH crds/widgets  %s", scene.StoreBeta)
		s.Create(v1beta1, "two", `{"size":2}`)
		after := s.bytes("one")
		s.bytes("two")
		b.finds(after.revision != before.revision, "")
	}},
	{"An empty patch does not rewrite", func(b *book) {
		s := b.stale(`{"size":1}`)
		before := s.bytes("one")
		s.merge(v1beta1, "one", `{}`)
		after := s.bytes("one")
		b.finds(after.revision == before.revision, "An object that is stored at another version")
		s.merge(v1beta1, "one", `{}`)
		b.finds(s.bytes("one").revision == after.revision, "The same object once more")
	}},
	{"A dry run of a rewrite moves the object", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.merge(v1beta1, "one", `{}`, "dryRun=All")
		b.finds(s.bytes("one").version == v1beta1, "")
	}},
	{"Only a write through the new version moves an object", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.merge(v1alpha1, "one", `{}`)
		b.finds(s.bytes("one").version == v1alpha1, "")
	}},
	{"A rewrite leaves metadata.generation as it is", func(b *book) {
		for _, version := range []string{v1alpha1, v1beta1} {
			s := b.stale(`{"size":1}`)
			before := s.peek("one")
			s.merge(version, "one", `{}`)
			after := s.bytes("one")
			b.note("generation %d, was %d", after.generation, before.generation)
			b.finds(after.generation == before.generation, "Through "+version)
		}
	}},
	{"Who creates an object at the new version gets it stored at the new version", func(b *book) {
		s := b.stage(usual)
		s.post(v1beta1, "one", `{"size":1,"tier":"gold"}`)
		b.finds(s.bytes("one").version == v1beta1, "While v1alpha1 is the storage version")
		s.switchStorage()
		s.post(v1beta1, "two", `{"size":1,"tier":"gold"}`)
		b.finds(s.bytes("two").version == v1beta1, "When v1beta1 is the storage version")
	}},
	{"An unserved version cannot be a storage version", func(b *book) {
		s := b.stage(usual)
		resp := s.noting(unserve(0))
		s.post(v1beta1, "one", `{"size":1}`)
		stored := s.bytes("one").version
		b.finds(resp.Refused() || stored != v1alpha1, "")
	}},
	{"Strict validation catches a field lost to None", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1,"old":"dear"}`)
		s.bytes("one")
		resp := s.merge(v1beta1, "one", `{"spec":{"size":2}}`, "fieldValidation=Strict")
		b.finds(resp.Refused() || len(resp.Warnings) > 0 || s.bytes("one").has("old"), "")
	}},
	{"An old client leaves the fields alone that it does not know", func(b *book) {
		for _, c := range []struct {
			when  string
			write func(*stage)
		}{
			{"It reads and writes the whole object", func(s *stage) { s.putBack(v1alpha1, "one") }},
			{"It sends a merge patch of another field", func(s *stage) { s.merge(v1alpha1, "one", `{"spec":{"size":2}}`) }},
		} {
			s := b.stage(usual)
			s.switchStorage()
			s.Create(v1beta1, "one", `{"size":1,"tier":"gold"}`)
			before := s.bytes("one")
			c.write(s)
			after := s.bytes("one")
			b.finds(before.has("tier") && after.has("tier"), c.when)
		}
	}},
}
