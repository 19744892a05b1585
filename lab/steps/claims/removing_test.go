package claims

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// tooEarly removes v1alpha1 while an object is stored at it, after storedVersions was trimmed.
func (b *book) tooEarly() *stage {
	b.Helper()
	s := b.stale(`{"size":1}`)
	s.Create(v1beta1, "two", `{"size":2}`)
	s.counts()
	s.trim(`["v1beta1"]`)
	s.noting(remove)
	s.Until("the removal is in effect", func() bool { return s.Get(v1beta1, "one").Status == http.StatusInternalServerError })
	return s
}

// sameVersions says whether a record names just the versions of which there are objects.
func sameVersions(counts map[string]int, record []string) bool {
	stored := slices.Sorted(maps.Keys(counts))
	return slices.Equal(stored, slices.Sorted(slices.Values(record)))
}

var removing = []claim{
	{"storedVersions names the versions that objects are stored at", func(b *book) {
		s := b.stage(usual)
		s.Create(v1alpha1, "one", `{"size":1}`)
		b.finds(sameVersions(s.counts(), s.record()), "While there is but one storage version")
		s.switchStorage()
		b.finds(sameVersions(s.counts(), s.record()), "After a switch of the storage version")
		s.rewrite("one")
		b.finds(sameVersions(s.counts(), s.record()), "After a rewrite of all objects")
	}},
	{"storedVersions shrinks after a rewrite", func(b *book) {
		s := b.stale(`{"size":1}`)
		before := s.record()
		s.merge(v1beta1, "one", `{}`)
		s.counts()
		b.finds(len(s.record()) < len(before), "")
	}},
	{"storedVersions shrinks when the storage version is switched back before anything was written", func(b *book) {
		s := b.stage(usual)
		s.PatchCRD(scene.StoreBeta)
		before := s.record()
		s.crd(`[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]`)
		b.finds(len(s.record()) < len(before), "")
	}},
	{"A patch of storedVersions on the main resource works", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.rewrite("one")
		s.status("", `["v1beta1"]`)
		b.finds(equal(s.record(), v1beta1), "On the CRD itself")
		s.status("/status", `["v1beta1"]`)
		b.finds(equal(s.record(), v1beta1), "On its subresource /status")
	}},
	{"storedVersions is checked against etcd when it is patched", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.counts()
		resp := s.trim(`["v1beta1"]`)
		b.finds(resp.Refused() || !equal(s.record(), v1beta1), "")
	}},
	{"Removing a version is refused as long as objects are stored at it", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.counts()
		s.record()
		b.finds(s.crd(remove).Refused(), "While storedVersions names it")
		s.trim(`["v1beta1"]`)
		s.counts()
		b.finds(s.crd(remove).Refused(), "When storedVersions was trimmed")
	}},
	{"Removing a version is accepted once no object is stored at it", func(b *book) {
		s := b.stale(`{"size":1}`)
		s.rewrite("one")
		s.counts()
		b.finds(!s.crd(remove).Refused(), "While storedVersions names it")
		s.trim(`["v1beta1"]`)
		b.finds(!s.crd(remove).Refused(), "When storedVersions was trimmed")
	}},
	{"Objects vanish from the list when their version is removed", func(b *book) {
		s := b.tooEarly()
		resp := s.list(v1beta1)
		b.finds(resp.Status == http.StatusOK && !strings.Contains(string(resp.Body), `"one"`), "")
	}},
	{"Objects of a version that was removed too early are lost", func(b *book) {
		s := b.tooEarly()
		s.get(v1beta1, "one")
		s.crd(`[{"op":"add","path":"/spec/versions/0","value":{"name":"v1alpha1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`)
		s.Until("the version is back", func() bool { return s.Get(v1beta1, "one").Status != http.StatusInternalServerError })
		b.finds(s.get(v1beta1, "one").Refused(), "")
	}},
	{"New objects still work when old ones cannot be decoded", func(b *book) {
		s := b.tooEarly()
		b.finds(!s.get(v1beta1, "two").Refused(), "One that is stored at the version that stayed is read")
		b.finds(!s.post(v1beta1, "three", `{"size":3}`).Refused(), "Another is created")
		b.finds(!s.post(v1beta1, "one", `{"size":1}`).Refused(), "Another is created, of the name of one that cannot be decoded")
	}},
	{"An object that cannot be decoded can at least be deleted", func(b *book) {
		s := b.tooEarly()
		resp := s.remove(v1beta1, "one")
		s.counts()
		b.finds(!resp.Refused(), "")
	}},
}
