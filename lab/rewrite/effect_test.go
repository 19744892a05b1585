package rewrite

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

func TestTheSwitchIsInEffectAfterTheWait(t *testing.T) {
	s := newScene(t)
	s.Create("v1alpha1", "model", `{"size":1,"color":"red"}`)
	tries := 0
	for i := range 10 {
		for _, to := range []struct{ version, patch string }{{"v1beta1", scene.StoreBeta}, {"v1alpha1", storeAlpha}} {
			s.PatchCRD(to.patch)
			effect, err := s.rewriter().WaitInEffect(t.Context(), to.version, nil)
			s.Must(err)
			tries += effect.Tries
			name := fmt.Sprintf("after-%d-%s", i, to.version)
			s.Create("v1alpha1", name, `{"size":1}`)
			if got := s.value(name).Version(); got != to.version || !effect.Seen {
				t.Errorf("switch %d to %s: stored at %s; %+v", i, to.version, got, effect)
			}
		}
	}
	t.Logf("20 switches took %d probes", tries)
	s.noProbes()
}

// noProbes fails where a probe is still there.
func (s *fixture) noProbes() {
	s.Helper()
	err := EachMetadata(s.Context(), s.Client.Unrecorded(), s.Resource, "v1alpha1", "", func(m *Metadata) error {
		if strings.HasPrefix(m.Name, ProbePrefix) {
			s.Errorf("left behind: %s", m.Name)
		}
		return nil
	})
	s.Must(err)
}

func TestProbesCopyTheContentOfAnObjectAndNothingElse(t *testing.T) {
	s := newScene(t)
	s.Create("v1alpha1", "model", `{"size":7,"color":"red"}`)
	s.PatchCRD(scene.StoreBeta)
	_, err := s.rewriter().WaitInEffect(t.Context(), "v1beta1", nil)
	s.Must(err)
	probes := s.probes()
	if len(probes) == 0 {
		t.Fatal("no probe was created")
	}
	for _, p := range probes {
		if p.Actor != evidence.ByProbe || !strings.Contains(p.Body, `"size":7`) || strings.Contains(p.Body, "managedFields") {
			t.Errorf("%s %s by %s: %s", p.Method, p.Path, p.Actor, p.Body)
		}
	}
}

// probes are the creates of probes.
func (s *fixture) probes() []evidence.Exchange {
	return slices.DeleteFunc(s.Exchanges.Since(0), func(x evidence.Exchange) bool {
		return x.Method != http.MethodPost || !strings.Contains(x.Body, ProbePrefix)
	})
}

func TestAnEmptyKindNeedsATemplateWhereTheSchemaDemandsFields(t *testing.T) {
	s := newScene(t)
	s.PatchCRD(`[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/required","value":["spec"]},` + strings.TrimPrefix(scene.StoreBeta, "["))
	s.Until("v1beta1 demands a spec", func() bool {
		resp, err := s.Client.Unrecorded().Create(t.Context(), s.Path("v1beta1", "")+"?dryRun=All", "", nil)
		s.Must(err)
		return resp.Refused()
	})
	_, err := s.rewriter().WaitInEffect(t.Context(), "v1beta1", nil)
	if err == nil || !strings.Contains(err.Error(), "give one to copy") {
		t.Errorf("error: %v", err)
	}
	effect, err := s.rewriter().WaitInEffect(t.Context(), "v1beta1", Template(`{"spec":{"size":1}}`))
	s.Must(err)
	if !effect.Seen {
		t.Errorf("%+v", effect)
	}
	s.noProbes()
}

func TestWithoutBytesTheEffectIsNotSeen(t *testing.T) {
	s := newScene(t)
	s.PatchCRD(scene.StoreBeta)
	blind := s.rewriter()
	blind.Storage = nil
	effect, err := blind.WaitInEffect(t.Context(), "v1beta1", nil)
	s.Must(err)
	if effect.Seen || effect.Tries == 0 || effect.Took < blindDelay {
		t.Errorf("%+v", effect)
	}
	s.noProbes()
}

func TestNobodyWaitsForWhatTheCRDDoesNotSay(t *testing.T) {
	s := newScene(t)
	_, err := s.rewriter().WaitInEffect(t.Context(), "v1beta1", nil)
	if err == nil || !strings.Contains(err.Error(), "v1alpha1 is") {
		t.Errorf("error: %v", err)
	}
	if p := s.probes(); len(p) != 0 {
		t.Errorf("created all the same: %v", p)
	}
}

func TestAProbeIsDeletedWhenTheWaitIsCancelled(t *testing.T) {
	s := newScene(t)
	s.PatchCRD(scene.StoreBeta)
	ctx, cancel := context.WithCancel(t.Context())
	r := s.rewriter()
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			if req.Method == http.MethodPost {
				cancel() // while the create is on its way
			}
			return nil
		}}
	})
	began := time.Now()
	if _, err := r.WaitInEffect(ctx, "v1beta1", nil); err != nil && ctx.Err() == nil {
		t.Errorf("error: %v", err)
	}
	if took := time.Since(began); took > probeRemove {
		t.Errorf("it took %v to stop", took)
	}
	if created := s.probes(); len(created) != 1 || created[0].Status != http.StatusCreated {
		t.Errorf("creates: %+v", created)
	}
	s.noProbes()
}
