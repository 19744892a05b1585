// Package scene is a CRD of a test's own on an embedded server. It is for tests.
package scene

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

var (
	server *embedded.Server
	scenes atomic.Int32
)

// WithServer runs one API server for all tests of a package; each scene has an API group of its own.
func WithServer(run func() int) int {
	state, err := os.MkdirTemp("", "crdlab-scene-")
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

// Widgets is a CRD, in YAML, with a schema of the spec for each version. GROUP stands for its API group.
func Widgets(alpha, beta string) string {
	return strings.NewReplacer("ALPHA", alpha, "BETA", beta).Replace(`
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
          spec: ALPHA
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: BETA
`)
}

// Namespace is where namespaced widgets are.
const Namespace = "crdlab"

// StoreBeta is the patch that makes v1beta1 the storage version.
const StoreBeta = `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`

// Scene is a CRD of a test's own, with v1alpha1 as its storage version.
type Scene struct {
	testing.TB
	Server    *embedded.Server
	Client    *evidence.Client
	Exchanges *evidence.Log
	Storage   storage.Reader
	Resource  storage.Resource
	Namespace string // of the widgets
}

// New creates a CRD like Widgets, with widgets in a namespace, or in none, and waits until it serves.
func New(t testing.TB, definition, namespace string) *Scene {
	t.Helper()
	s := &Scene{TB: t, Server: server, Exchanges: evidence.NewLog(), Namespace: namespace}
	s.Resource = storage.Resource{Group: fmt.Sprintf("scene%d.example.com", scenes.Add(1)), Plural: "widgets"}
	s.Client = s.ClientThrough(nil)
	reader, err := server.Storage()
	s.Must(err)
	t.Cleanup(func() { reader.Close() })
	s.Storage = reader
	crd, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(definition, "GROUP", s.Resource.Group)))
	s.Must(err)
	s.Accepted(s.Client.Create(t.Context(), evidence.DefinitionsPath, "", crd))
	s.Until("the CRD is Established", func() bool {
		return slices.ContainsFunc(s.Definition().Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
	})
	s.Until("both versions are served", func() bool {
		return s.Get("v1alpha1", "").Status == http.StatusOK && s.Get("v1beta1", "").Status == http.StatusOK
	})
	return s
}

// ClientThrough makes a client whose requests pass a middle, which may change or answer them.
func (s *Scene) ClientThrough(middle func(http.RoundTripper) http.RoundTripper) *evidence.Client {
	config := rest.CopyConfig(s.Server.Config())
	if middle != nil {
		config.Wrap(middle)
	}
	c, err := evidence.NewClient(config, s.Exchanges)
	s.Must(err)
	s.Cleanup(c.Close)
	return c
}

// Must ends the test at an error.
func (s *Scene) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Accepted ends the test unless the server did what it was asked.
func (s *Scene) Accepted(resp *evidence.Response, err error) *evidence.Response {
	s.Helper()
	s.Must(err)
	s.Must(resp.Err())
	return resp
}

// Until waits for a condition; the test's own deadline ends it.
func (s *Scene) Until(what string, holds func() bool) {
	s.Helper()
	for !holds() {
		if s.Context().Err() != nil {
			s.Fatalf("never seen: %s", what)
		}
	}
}

// Definition is the CRD as the server has it.
func (s *Scene) Definition() *apiextensionsv1.CustomResourceDefinition {
	s.Helper()
	resp := s.Accepted(s.Client.Unrecorded().Get(s.Context(), evidence.DefinitionPath(s.Resource), nil))
	var crd apiextensionsv1.CustomResourceDefinition
	s.Must(json.Unmarshal(resp.Body, &crd))
	return &crd
}

// Path is where a widget is, or all of them, where it has no name.
func (s *Scene) Path(version, name string) string {
	if name == "" {
		return evidence.CollectionPath(s.Resource, version, s.Namespace)
	}
	return evidence.ObjectPath(s.Resource, version, s.Namespace, name)
}

// Get reads a widget, or all of them, where it has no name; the answer may be a refusal.
func (s *Scene) Get(version, name string) *evidence.Response {
	s.Helper()
	resp, err := s.Client.Unrecorded().Get(s.Context(), s.Path(version, name), nil)
	s.Must(err)
	return resp
}

// Create creates a widget; spec is JSON.
func (s *Scene) Create(version, name, spec string) {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, s.Resource.Group, version, name, spec)
	s.Accepted(s.Client.Unrecorded().Create(s.Context(), s.Path(version, ""), "creator", []byte(body)))
}

// CreateMany creates widgets w-000, w-001, … at v1alpha1.
func (s *Scene) CreateMany(n int) {
	s.Helper()
	for i := range n {
		s.Create("v1alpha1", fmt.Sprintf("w-%03d", i), fmt.Sprintf(`{"size":%d,"color":"red"}`, i))
	}
}

// Fill creates many widgets at v1alpha1, several at once.
func (s *Scene) Fill(n int) {
	var creating sync.WaitGroup
	turn := make(chan int)
	for range 8 {
		creating.Go(func() {
			for i := range turn {
				s.Create("v1alpha1", fmt.Sprintf("w-%05d", i), fmt.Sprintf(`{"size":%d,"color":"red"}`, i%1000))
			}
		})
	}
	for i := range n {
		turn <- i
	}
	close(turn)
	creating.Wait()
}

// Apply applies a widget on the server side.
func (s *Scene) Apply(version, name, manager, spec string) *evidence.Response {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, s.Resource.Group, version, name, spec)
	resp, err := s.Client.Unrecorded().Apply(s.Context(), s.Path(version, name), manager, false, []byte(body))
	s.Must(err)
	return resp
}

// PatchCRD changes the CRD by a JSON patch.
func (s *Scene) PatchCRD(patch string) {
	s.Helper()
	s.Accepted(s.Client.Patch(s.Context(), evidence.DefinitionPath(s.Resource), evidence.JSONPatch, "", []byte(patch)))
}

// Objects is how many objects a benchmark is to have: what CRDLAB_BENCH_OBJECTS says, or else usual.
func Objects(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("CRDLAB_BENCH_OBJECTS")); err == nil {
		return n
	}
	return usual
}
