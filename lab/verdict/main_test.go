package verdict

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

var server *embedded.Server

func TestMain(m *testing.M) {
	os.Exit(withServer(m.Run))
}

// withServer runs one API server for all tests; each test has an API group of its own.
func withServer(run func() int) int {
	state, err := os.MkdirTemp("", "crdlab-verdict-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(state)
	if server, err = embedded.Start(context.Background(), embedded.Options{StateDir: state}); err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	return run()
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              color: {type: string}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              color: {type: string}
              tier: {type: string, default: standard}
`

const namespace = "crdlab"

// scene is a CRD of a test's own, with v1alpha1 as its storage version.
type scene struct {
	testing.TB
	client   *evidence.Client
	log      *evidence.Log
	storage  storage.Reader
	resource storage.Resource
	where    string // the namespace of the widgets
}

var scenes atomic.Int32

// newScene creates the CRD, and waits until it serves.
func newScene(t testing.TB) *scene {
	t.Helper()
	return newSceneOf(t, widgets, namespace)
}

// newSceneOf makes a scene of another CRD, with widgets in a namespace, or in none.
func newSceneOf(t testing.TB, definition, where string) *scene {
	t.Helper()
	s := &scene{TB: t, log: evidence.NewLog(), where: where}
	s.resource = storage.Resource{Group: fmt.Sprintf("scene%d.example.com", scenes.Add(1)), Plural: "widgets"}
	client, err := evidence.NewClient(server.Config(), s.log)
	s.must(err)
	t.Cleanup(client.Close)
	s.client = client
	reader, err := server.Storage()
	s.must(err)
	t.Cleanup(func() { reader.Close() })
	s.storage = reader
	crd, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(definition, "GROUP", s.resource.Group)))
	s.must(err)
	s.accepted(s.client.Create(t.Context(), evidence.DefinitionsPath, "", crd))
	s.until("both versions are served", func() bool {
		return s.get("v1alpha1", "").Status == http.StatusOK && s.get("v1beta1", "").Status == http.StatusOK
	})
	return s
}

func (s *scene) rewriter() *rewrite.Rewriter {
	return &rewrite.Rewriter{Client: s.client, Storage: s.storage, Resource: s.resource, Namespace: s.where}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) accepted(resp *evidence.Response, err error) *evidence.Response {
	s.Helper()
	s.must(err)
	s.must(resp.Err())
	return resp
}

// until waits for a condition; the test's own deadline ends it.
func (s *scene) until(what string, holds func() bool) {
	s.Helper()
	for !holds() {
		if s.Context().Err() != nil {
			s.Fatalf("never seen: %s", what)
		}
	}
}

func (s *scene) path(version, name string) string {
	if name == "" {
		return evidence.CollectionPath(s.resource, version, s.where)
	}
	return evidence.ObjectPath(s.resource, version, s.where, name)
}

func (s *scene) get(version, name string) *evidence.Response {
	s.Helper()
	resp, err := s.client.Unrecorded().Get(s.Context(), s.path(version, name), nil)
	s.must(err)
	return resp
}

// create creates a widget; spec is JSON.
func (s *scene) create(version, name, spec string) {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, s.resource.Group, version, name, spec)
	s.accepted(s.client.Unrecorded().Create(s.Context(), s.path(version, ""), "creator", []byte(body)))
}

// createMany creates widgets w-000, w-001, … at v1alpha1.
func (s *scene) createMany(n int) {
	s.Helper()
	for i := range n {
		s.create("v1alpha1", fmt.Sprintf("w-%03d", i), fmt.Sprintf(`{"size":%d,"color":"red"}`, i))
	}
}

// apply applies a widget on the server side.
func (s *scene) apply(version, name, manager, spec string) *evidence.Response {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, s.resource.Group, version, name, spec)
	resp, err := s.client.Unrecorded().Apply(s.Context(), s.path(version, name), manager, false, []byte(body))
	s.must(err)
	return resp
}

// patchCRD changes the CRD by a JSON patch.
func (s *scene) patchCRD(patch string) {
	s.Helper()
	s.accepted(s.client.Patch(s.Context(), evidence.DefinitionPath(s.resource), evidence.JSONPatch, "", []byte(patch)))
}

const (
	storeBeta = `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`
	serveNot  = `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`
	serveNone = `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`
	removeOld = `[{"op":"remove","path":"/spec/versions/0"}]`
)

// switchStorage makes v1beta1 the storage version, and waits until it is in effect.
func (s *scene) switchStorage() {
	s.Helper()
	s.patchCRD(storeBeta)
	effect, err := s.rewriter().WaitInEffect(s.Context(), "v1beta1", nil)
	s.must(err)
	if !effect.Seen {
		s.Fatalf("the bytes can be read, and yet the effect was not seen: %+v", effect)
	}
}

// rewriteAll rewrites every object at v1beta1.
func (s *scene) rewriteAll() {
	s.Helper()
	got, err := s.rewriter().Rewrite(s.Context(), "v1beta1")
	s.must(err)
	if len(got.Failures) != 0 {
		s.Fatalf("%+v", got.Failures)
	}
}

func (s *scene) relabelAll() {
	s.Helper()
	_, err := s.rewriter().Relabel(s.Context(), []string{"v1alpha1"}, "v1beta1")
	s.must(err)
}

func (s *scene) trim() {
	s.Helper()
	guard, err := rewrite.ReadGuard(s.Context(), s.client, s.resource)
	s.must(err)
	s.must(rewrite.Trim(s.Context(), s.client, s.resource, []string{"v1beta1"}, guard))
}

// unserve stops serving v1alpha1, and remove takes it out of spec.versions.
func (s *scene) unserve() {
	s.Helper()
	s.patchCRD(serveNot)
	s.until("v1alpha1 is not served", func() bool { return s.get("v1alpha1", "").Status == http.StatusNotFound })
}

func (s *scene) remove() {
	s.Helper()
	s.patchCRD(removeOld)
	s.until("v1alpha1 is not served", func() bool { return s.get("v1alpha1", "").Status == http.StatusNotFound })
}

// switchStorageLike switches the storage version where existing objects are no model for probes.
func (s *scene) switchStorageLike(model string) {
	s.Helper()
	s.patchCRD(storeBeta)
	_, err := s.rewriter().WaitInEffect(s.Context(), "v1beta1", rewrite.Template(model))
	s.must(err)
}

func (s *scene) inEffect() error {
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
