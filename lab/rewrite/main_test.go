package rewrite

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

var server *embedded.Server

func TestMain(m *testing.M) {
	os.Exit(withServer(m.Run))
}

// withServer runs one API server for all tests; each test has an API group of its own.
func withServer(run func() int) int {
	state, err := os.MkdirTemp("", "crdlab-rewrite-")
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
              old: {type: string}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 1000}
              color: {type: string}
              tier: {type: string, default: standard}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const namespace = "crdlab"

// scene is a CRD of a test's own, with v1alpha1 as its storage version.
type scene struct {
	testing.TB
	client   *evidence.Client
	log      *evidence.Log
	storage  storage.Reader
	resource storage.Resource
}

var scenes atomic.Int32

// newScene creates the CRD, and waits until it serves.
func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{TB: t, log: evidence.NewLog()}
	s.resource = storage.Resource{Group: fmt.Sprintf("scene%d.example.com", scenes.Add(1)), Plural: "widgets"}
	s.client = s.clientThrough(nil)
	reader, err := server.Storage()
	s.must(err)
	t.Cleanup(func() { reader.Close() })
	s.storage = reader
	crd, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(widgets, "GROUP", s.resource.Group)))
	s.must(err)
	s.accepted(s.client.Create(t.Context(), evidence.DefinitionsPath, "", crd))
	s.until("the CRD is Established", func() bool { return isTrue(s.definition(), apiextensionsv1.Established) })
	s.until("both versions are served", func() bool {
		return s.get("v1alpha1", "").Status == http.StatusOK && s.get("v1beta1", "").Status == http.StatusOK
	})
	return s
}

// clientThrough makes a client whose requests pass a middle, which may change or answer them.
func (s *scene) clientThrough(middle func(http.RoundTripper) http.RoundTripper) *evidence.Client {
	config := rest.CopyConfig(server.Config())
	if middle != nil {
		config.Wrap(middle)
	}
	c, err := evidence.NewClient(config, s.log)
	s.must(err)
	s.Cleanup(c.Close)
	return c
}

func (s *scene) rewriter() *Rewriter {
	return &Rewriter{Client: s.client, Storage: s.storage, Resource: s.resource, Namespace: namespace}
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

func (s *scene) definition() *apiextensionsv1.CustomResourceDefinition {
	s.Helper()
	crd, err := Definition(s.Context(), s.client.Unrecorded(), s.resource)
	s.must(err)
	return crd
}

func (s *scene) path(version, name string) string {
	if name == "" {
		return evidence.CollectionPath(s.resource, version, namespace)
	}
	return evidence.ObjectPath(s.resource, version, namespace, name)
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
	storeBeta  = `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`
	storeAlpha = `[{"op":"replace","path":"/spec/versions/1/storage","value":false},{"op":"replace","path":"/spec/versions/0/storage","value":true}]`
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

// value is what is stored of a widget.
func (s *scene) value(name string) *storage.Value {
	s.Helper()
	v, err := s.storage.Get(s.Context(), s.resource, namespace, name)
	s.must(err)
	return v
}

func (s *scene) counts() map[string]int {
	s.Helper()
	c, err := storage.Count(s.Context(), s.storage, s.resource)
	s.must(err)
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

func (s *scene) stored(name string) stored {
	s.Helper()
	var w stored
	s.must(json.Unmarshal(s.value(name).Data, &w))
	return w
}
