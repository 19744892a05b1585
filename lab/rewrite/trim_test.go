package rewrite

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
)

func (s *fixture) guard() Guard {
	s.Helper()
	g, err := ReadGuard(s.Context(), s.Client, s.Resource)
	s.Must(err)
	return g
}

func (s *fixture) record() []string { return s.Definition().Status.StoredVersions }

func TestTrimSetsTheRecord(t *testing.T) {
	s := newScene(t)
	s.switchStorage()
	if r := s.record(); !slices.Equal(r, []string{"v1alpha1", "v1beta1"}) {
		t.Fatalf("before: %v", r)
	}
	s.Must(Trim(t.Context(), s.Client, s.Resource, []string{"v1beta1"}, s.guard()))
	if r := s.record(); !slices.Equal(r, []string{"v1beta1"}) {
		t.Errorf("after: %v", r)
	}
	sent := s.Exchanges.Seq()
	s.Must(Trim(t.Context(), s.Client, s.Resource, []string{"v1beta1"}, s.guard()))
	for _, x := range s.Exchanges.Since(sent) {
		if x.Method != http.MethodGet {
			t.Errorf("the record was right already, and yet: %s %s", x.Method, x.Path)
		}
	}
}

func TestTrimTrimsNothingOnceTheCRDHasChanged(t *testing.T) {
	changes := map[string]struct {
		change func(*fixture)
		loose  bool // without a resourceVersion in the guard, it does not matter
		says   string
	}{
		"spec": {func(s *fixture) {
			s.PatchCRD(`[{"op":"add","path":"/spec/versions/1/deprecated","value":true}]`)
		}, false, "generation"},
		"labels": {func(s *fixture) { s.PatchCRD(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`) }, true, "resourceVersion"},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.switchStorage()
			guard := s.guard()
			c.change(s)
			err := Trim(t.Context(), s.Client, s.Resource, []string{"v1beta1"}, guard)
			if changed := new(ChangedError); !errors.Is(err, ErrChanged) || !errors.As(err, &changed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error: %v", err)
			}
			if r := s.record(); !slices.Equal(r, []string{"v1alpha1", "v1beta1"}) {
				t.Errorf("trimmed all the same: %v", r)
			}
			guard.ResourceVersion = ""
			if err := Trim(t.Context(), s.Client, s.Resource, []string{"v1beta1"}, guard); (err == nil) != c.loose {
				t.Errorf("without a resourceVersion in the guard: %v", err)
			}
		})
	}
}

func TestTrimIsGuardedByTheServerToo(t *testing.T) {
	s := newScene(t)
	s.switchStorage()
	guard := s.guard()
	// The CRD changes after Trim has looked at it, and before the server gets the patch.
	client := s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			if req.Method == http.MethodPatch {
				s.PatchCRD(`[{"op":"add","path":"/spec/versions/1/deprecated","value":true}]`)
			}
			return nil
		}}
	})
	if err := Trim(t.Context(), client, s.Resource, []string{"v1beta1"}, guard); !errors.Is(err, ErrChanged) {
		t.Errorf("error: %v", err)
	}
	if r := s.record(); !slices.Equal(r, []string{"v1alpha1", "v1beta1"}) {
		t.Errorf("trimmed all the same: %v", r)
	}
}

func TestTrimRefusesARecordThatNobodyCanMean(t *testing.T) {
	s := newScene(t)
	for _, keep := range [][]string{nil, {"v1beta1"}, {"v1alpha1", "v9"}} {
		if err := Trim(t.Context(), s.Client, s.Resource, keep, s.guard()); err == nil || errors.Is(err, ErrChanged) {
			t.Errorf("keep %v: %v", keep, err)
		}
	}
	for _, x := range s.Exchanges.Since(0) {
		if x.To(evidence.DefinitionPath(s.Resource) + "/status") {
			t.Errorf("sent all the same: %s", x.Body)
		}
	}
}
