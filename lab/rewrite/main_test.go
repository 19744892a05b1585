package rewrite

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/crdlab/crdlab/lab/rewrite/scene"
	"github.com/crdlab/crdlab/lab/storage"
)

func TestMain(m *testing.M) {
	os.Exit(scene.WithServer(m.Run))
}

var widgets = scene.Widgets(`{type: object, properties: {
              size: {type: integer},
              color: {type: string},
              old: {type: string},
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`,
	`{type: object, required: [size], properties: {
              size: {type: integer, maximum: 1000},
              color: {type: string},
              tier: {type: string, default: standard},
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`)

// fixture is a scene with what the tests here do in it.
type fixture struct{ *scene.Scene }

func newScene(t testing.TB) *fixture {
	t.Helper()
	return &fixture{scene.New(t, widgets, scene.Namespace)}
}

func (s *fixture) rewriter() *Rewriter {
	return &Rewriter{Client: s.Client, Storage: s.Storage, Resource: s.Resource, Namespace: s.Namespace}
}

// storeAlpha is the patch that undoes scene.StoreBeta.
const storeAlpha = `[{"op":"replace","path":"/spec/versions/1/storage","value":false},{"op":"replace","path":"/spec/versions/0/storage","value":true}]`

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

// value is what is stored of a widget.
func (s *fixture) value(name string) *storage.Value {
	s.Helper()
	v, err := s.Storage.Get(s.Context(), s.Resource, s.Namespace, name)
	s.Must(err)
	return v
}

func (s *fixture) counts() map[string]int {
	s.Helper()
	c, err := storage.Count(s.Context(), s.Storage, s.Resource)
	s.Must(err)
	return c.ByVersion
}

// stored is a widget as its bytes say.
type stored struct {
	APIVersion string
	Metadata   struct {
		Generation    int64
		ManagedFields []map[string]any
	}
	Spec map[string]any
}

func (s *fixture) stored(name string) stored {
	s.Helper()
	var w stored
	s.Must(json.Unmarshal(s.value(name).Data, &w))
	return w
}
