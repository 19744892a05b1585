package kind_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/kind"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

const (
	namespace = "crdlab"
	gadgets   = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP, labels: {app.kubernetes.io/managed-by: crdlab}}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
)

// scene is a CRD of a test's own on the shared cluster. The test's end resets it.
type scene struct {
	testing.TB
	cluster  *kind.Cluster
	client   *evidence.Client
	resource storage.Resource
}

var scenes atomic.Int32

func newScene(t testing.TB) *scene {
	t.Helper()
	c := theCluster(t)
	s := &scene{TB: t, cluster: c, resource: storage.Resource{Group: fmt.Sprintf("scene%d.example.com", scenes.Add(1)), Plural: "gadgets"}}
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	s.must(err)
	t.Cleanup(client.Close)
	s.client = client.Unrecorded()
	scope := cluster.Scope{Resource: s.resource, Namespace: namespace}
	s.must(c.Prepare(t.Context(), scope))
	t.Cleanup(func() {
		if err := c.Reset(context.Background(), scope); err != nil {
			t.Error(err)
		}
	})
	crd, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(gadgets, "GROUP", s.resource.Group)))
	s.must(err)
	s.accepted(s.client.Create(t.Context(), evidence.DefinitionsPath, "", crd))
	eventually(t, "both versions are served", func() bool { return s.get("v1", "").Status == http.StatusOK && s.get("v2", "").Status == http.StatusOK })
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) accepted(r *evidence.Response, err error) *evidence.Response {
	s.Helper()
	s.must(err)
	s.must(r.Err())
	return r
}

// get reads an object, or lists them all where the name is empty.
func (s *scene) get(version, name string) *evidence.Response {
	s.Helper()
	path := evidence.CollectionPath(s.resource, version, namespace)
	if name != "" {
		path = evidence.ObjectPath(s.resource, version, namespace, name)
	}
	r, err := s.client.Get(s.Context(), path, nil)
	s.must(err)
	return r
}

func (s *scene) create(version, name string) {
	s.Helper()
	s.accepted(s.send(version, name))
}

// tryCreate is true if the object is there, now or before.
func (s *scene) tryCreate(version, name string) bool {
	r, err := s.send(version, name)
	return err == nil && (r.Status == http.StatusCreated || r.Status == http.StatusConflict)
}

func (s *scene) send(version, name string) (*evidence.Response, error) {
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Gadget","metadata":{"name":"%s"},"spec":{"size":1}}`, s.resource.Group, version, name)
	return s.client.Create(s.Context(), evidence.CollectionPath(s.resource, version, namespace), "creator", []byte(body))
}

// label says who made the CRD.
func (s *scene) label(maker string) {
	s.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, cluster.ManagedBy, maker)
	s.accepted(s.client.Patch(s.Context(), evidence.DefinitionPath(s.resource), evidence.MergePatch, "", []byte(patch)))
}

func (s *scene) storage() storage.Reader {
	s.Helper()
	from, err := s.cluster.Storage()
	s.must(err)
	s.Cleanup(func() { from.Close() })
	return from
}
