package verdict

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
	"github.com/crdlab/crdlab/lab/storage"
)

func TestMain(m *testing.M) {
	os.Exit(scene.WithServer(m.Run))
}

var widgets = scene.Widgets(`{type: object, properties: {size: {type: integer}, color: {type: string}}}`,
	`{type: object, properties: {size: {type: integer}, color: {type: string}, tier: {type: string, default: standard}}}`)

// fixture is a scene with what the tests here do in it.
type fixture struct{ *scene.Scene }

func newScene(t testing.TB) *fixture {
	t.Helper()
	return newSceneOf(t, widgets, scene.Namespace)
}

// newSceneOf makes a scene of another CRD, with widgets in a namespace, or in none.
func newSceneOf(t testing.TB, definition, where string) *fixture {
	t.Helper()
	return &fixture{scene.New(t, definition, where)}
}

func (s *fixture) rewriter() *rewrite.Rewriter {
	return &rewrite.Rewriter{Client: s.Client, Storage: s.Storage, Resource: s.Resource, Namespace: s.Namespace}
}

const (
	serveNot  = `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`
	serveNone = `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`
	removeOld = `[{"op":"remove","path":"/spec/versions/0"}]`
)

// switchStorage makes v1beta1 the storage version, and waits until it is in effect.
func (s *fixture) switchStorage() {
	s.Helper()
	s.PatchCRD(scene.StoreBeta)
	effect, err := s.rewriter().WaitInEffect(s.Context(), "v1beta1", nil)
	s.Must(err)
	if !effect.Seen {
		s.Fatalf("the bytes can be read, and yet the effect was not seen: %+v", effect)
	}
}

// rewriteAll rewrites every object at v1beta1.
func (s *fixture) rewriteAll() {
	s.Helper()
	got, err := s.rewriter().Rewrite(s.Context(), "v1beta1")
	s.Must(err)
	if len(got.Failures) != 0 {
		s.Fatalf("%+v", got.Failures)
	}
}

func (s *fixture) relabelAll() {
	s.Helper()
	_, err := s.rewriter().Relabel(s.Context(), []string{"v1alpha1"}, "v1beta1")
	s.Must(err)
}

func (s *fixture) trim() {
	s.Helper()
	guard, err := rewrite.ReadGuard(s.Context(), s.Client, s.Resource)
	s.Must(err)
	s.Must(rewrite.Trim(s.Context(), s.Client, s.Resource, []string{"v1beta1"}, guard))
}

// unserve stops serving v1alpha1, and remove takes it out of spec.versions.
func (s *fixture) unserve() {
	s.Helper()
	s.PatchCRD(serveNot)
	s.Until("v1alpha1 is not served", func() bool { return s.Get("v1alpha1", "").Status == http.StatusNotFound })
}

func (s *fixture) remove() {
	s.Helper()
	s.PatchCRD(removeOld)
	s.Until("v1alpha1 is not served", func() bool { return s.Get("v1alpha1", "").Status == http.StatusNotFound })
}

// switchStorageLike switches the storage version where existing objects are no model for probes.
func (s *fixture) switchStorageLike(model string) {
	s.Helper()
	s.PatchCRD(scene.StoreBeta)
	_, err := s.rewriter().WaitInEffect(s.Context(), "v1beta1", rewrite.Template(model))
	s.Must(err)
}

func (s *fixture) inEffect() error {
	_, err := s.rewriter().WaitInEffect(s.Context(), "v1beta1", nil)
	return err
}

// changingReader changes something when the bytes have been read.
type changingReader struct {
	storage.Reader
	change func()
}

func (c *changingReader) Range(ctx context.Context, r storage.Resource, each func(*storage.Value) error) (int64, error) {
	defer c.change()
	return c.Reader.Range(ctx, r, each)
}
