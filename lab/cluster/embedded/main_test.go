package embedded

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/storage"
)

// TestMain makes the test binary what the program is: it runs itself as the child, and as the process in between that
// tests end in ways in which they cannot end themselves.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case ChildCommand:
			os.Exit(ChildMain(os.Args[2:], os.Stdin, os.Stdout))
		case betweenCommand:
			os.Exit(between(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

var widgets = storage.Resource{Group: "lab.example.com", Plural: "widgets"}

// widgetsAt is the resource at one version.
func widgetsAt(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: widgets.Group, Version: version, Resource: widgets.Plural}
}

// startServer starts a server that the test's end closes.
func startServer(t testing.TB, change ...func(*Options)) *Server {
	t.Helper()
	o := Options{StateDir: t.TempDir()}
	for _, c := range change {
		c(&o)
	}
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error("close:", err)
		}
	})
	return s
}

// widgetCRD has the versions given, all served, the first one stored.
func widgetCRD(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: widgets.String(), Labels: map[string]string{cluster.ManagedBy: "crdlab"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: widgets.Plural, Kind: "Widget"},
			Scope: apiextensionsv1.NamespaceScoped,
		},
	}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &anything,
			}},
		})
	}
	return crd
}

// createCRD creates a CRD and waits until it is established.
func createCRD(t testing.TB, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := crdClient(t, config).ApiextensionsV1().CustomResourceDefinitions()
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the CRD is established", func() (done bool) {
		var err error
		if crd, err = crds.Get(t.Context(), crd.Name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		return apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	})
	return crd
}

func crdClient(t testing.TB, config *rest.Config) clientset.Interface {
	t.Helper()
	c, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dynamicClient(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handClient is a client as others make it: from the kubeconfig.
func handClient(t testing.TB, kubeconfig string) dynamic.Interface {
	t.Helper()
	return dynamicClient(t, handConfig(t, kubeconfig))
}

func handConfig(t testing.TB, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	return config
}

func widget(version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widgets.Group + "/" + version, "kind": "Widget",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": int64(1)},
	}}
}

// createWidget creates one in the namespace crdlab.
func createWidget(t testing.TB, config *rest.Config, version, name string) {
	t.Helper()
	_, err := dynamicClient(t, config).Resource(widgetsAt(version)).Namespace(Namespace).
		Create(t.Context(), widget(version, name), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s at %s: %v", name, version, err)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("in vain waited for: " + what)
		}
	}
}

// exists tells whether something stands at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

var wholeScope = cluster.Scope{Resource: widgets, Namespace: Namespace}
