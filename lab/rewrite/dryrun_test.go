package rewrite

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestADryRunFindsWhatARewriteWouldLose(t *testing.T) {
	s := newScene(t)
	s.Create("v1alpha1", "safe", `{"size":1,"color":"red"}`)
	s.Create("v1alpha1", "lossy", `{"size":1,"old":"kept at v1alpha1 alone"}`)
	s.Create("v1alpha1", "poison", `{"extra":{"anything":"goes"}}`)
	s.switchStorage()
	before := s.value("lossy").ModRevision

	check := func(how string, r *Rewriter, version string) {
		losses, err := r.DryRun(t.Context(), "v1beta1")
		s.Must(err)
		if len(losses) != 2 {
			t.Fatalf("%s: %+v", how, losses)
		}
		lossy, poison := losses[0], losses[1]
		if lossy.Name != "lossy" || !slices.Equal(lossy.Fields, []string{"spec.old"}) || lossy.Version != version || lossy.Refused != "" {
			t.Errorf("%s: %+v", how, lossy)
		}
		if poison.Name != "poison" || !strings.HasPrefix(poison.Refused, "422 Invalid") {
			t.Errorf("%s: %+v", how, poison)
		}
	}
	blind := s.rewriter()
	blind.Storage = nil
	check("with the bytes", s.rewriter(), "v1alpha1")
	check("without the bytes", blind, "v1alpha1")
	s.PatchCRD(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	s.Until("v1alpha1 is not served", func() bool { return s.Get("v1alpha1", "safe").Status == http.StatusNotFound })
	check("with the bytes alone", s.rewriter(), "v1beta1")

	if now := s.value("lossy").ModRevision; now != before || !maps.Equal(s.counts(), map[string]int{"v1alpha1": 3}) {
		t.Errorf("a dry run has written: mod revision %d, then %d; stored %v", before, now, s.counts())
	}
}

func TestADryRunLooksAtASampleOfAll(t *testing.T) {
	s := newScene(t)
	s.CreateMany(30)
	s.switchStorage()
	r := s.rewriter()
	r.Sample = 3
	sample, err := r.sample(t.Context(), "v1beta1")
	s.Must(err)
	var names []string
	for _, o := range sample {
		names = append(names, o.Name)
		if o.Stored != "v1alpha1" || len(o.Bytes) == 0 {
			t.Errorf("%s: stored at %q, %d bytes", o.Name, o.Stored, len(o.Bytes))
		}
	}
	if !slices.Equal(names, []string{"w-000", "w-010", "w-020"}) {
		t.Errorf("%v", names)
	}
}
