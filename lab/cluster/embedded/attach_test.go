package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/storage"
)

// attach joins a server through its kubeconfig.
func attach(t *testing.T, s *Server) *Attached {
	t.Helper()
	a, err := Attach(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

func TestAttachSeesTheSameServerAndLeavesItRunning(t *testing.T) {
	s := startServer(t)
	a := attach(t, s)
	if a.Info().Version != s.Info().Version || a.Info().Type != "embedded" {
		t.Errorf("%+v, want %+v", a.Info(), s.Info())
	}
	createCRD(t, a.Config(), widgetCRD("v1"))
	createWidget(t, s.Config(), "v1", "one")
	values, err := a.Storage()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := values.Get(t.Context(), widgets, Namespace, "one"); err != nil {
		t.Error(err)
	}
	requests := watchRequests(t, a)
	expectOnlySentinel(t, s, requests)
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range requests {
	}
	if path, _ := a.Kubeconfig(); path != s.kubeconfig || !exists(path) {
		t.Errorf("the server's kubeconfig %s is gone", path)
	}
	createWidget(t, s.Config(), "v1", "two")
}

func TestAttachedWebhooksAreFound(t *testing.T) {
	s := startServer(t)
	a := attach(t, s)
	listener, err := a.ListenWebhook(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cert := serveConversion(t, listener, listener.DNSNames, make(chan string, 100))
	createCRD(t, a.Config(), webhookCRD(listener.Service, cert))
	createWidget(t, a.Config(), "v1alpha1", "one")
	_, err = dynamicClient(t, a.Config()).Resource(widgetsAt("v1beta1")).Namespace(Namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestAttachSaysWhatIsWrong(t *testing.T) {
	s := startServer(t)
	dir := t.TempDir()
	foreign, garbage := filepath.Join(dir, "foreign"), filepath.Join(dir, "garbage")
	text, loop, blank := filepath.Join(dir, "text"), filepath.Join(dir, "loop"), filepath.Join(dir, "no file")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		foreign: `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://a"}}],` +
			`"users":[{"name":"a","user":{}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"current-context":"a"}`,
		garbage: "no kubeconfig: [",
		text:    "no kubeconfig",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gone := filepath.Join(dir, "gone")
	data, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gone, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, c := range map[string]struct {
		is   error
		says string
	}{
		filepath.Join(dir, "missing"): {os.ErrNotExist, "crdlab serve --write-kubeconfig"},
		foreign:                       {ErrNotCrdlab, storageExtension},
		garbage:                       {nil, garbage + " is no kubeconfig (yaml: line 1: "},
		text:                          {nil, text + " is no kubeconfig (what it holds is not of apiVersion v1, kind Config); give the file that crdlab serve --write-kubeconfig wrote"},
		dir:                           {nil, dir + " is no kubeconfig (it is a folder); give the file"},
		loop:                          {syscall.ELOOP, "read the kubeconfig " + loop + ": "},
		blank:                         {os.ErrNotExist, "crdlab serve --write-kubeconfig '" + blank + "'"},
		gone:                          {nil, "the server has ended"},
	} {
		_, err := Attach(path)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v, %q", filepath.Base(path), err, c.is, c.says)
		}
	}
}

func TestWithoutTheSocketThereIsNoAccessToStoredValues(t *testing.T) {
	s := startServer(t)
	a := attach(t, s)
	a.storage = "unix://" + filepath.Join(t.TempDir(), socketName)
	for _, says := range []string{"the server answers, but its etcd socket ", "the server has ended; start it again: "} {
		if _, err := a.Storage(); !errors.Is(err, storage.ErrNoAccess) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want ErrNoAccess and %q", err, says)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAttachedResetRemovesWhatIsStuck(t *testing.T) {
	s := startServer(t)
	a := attach(t, s)
	for name, makeStuck := range map[string]func(*testing.T, *Server){
		"nothing there":                  func(*testing.T, *Server) {},
		"trimmed, removed, then deleted": trimRemoveDelete,
		"a finalizer that nobody takes":  finalizerAndDelete,
		"a record of what never was":     wrongRecord,
		"a webhook that is gone":         deadWebhook,
	} {
		t.Run(name, func(t *testing.T) {
			makeStuck(t, s)
			if err := a.Reset(t.Context(), wholeScope); err != nil {
				t.Fatal(err)
			}
			_, err := crdClient(t, s.Config()).ApiextensionsV1().CustomResourceDefinitions().
				Get(t.Context(), widgets.String(), metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("the CRD: %v, want NotFound", err)
			}
			values, err := a.Storage()
			if err != nil {
				t.Fatal(err)
			}
			counts, err := storage.Count(t.Context(), values, widgets)
			if err != nil || counts.Total != 0 {
				t.Errorf("stored: %+v, %v", counts, err)
			}
			// The way is free for the next.
			createCRD(t, s.Config(), widgetCRD("v1"))
			createWidget(t, s.Config(), "v1", "one")
			if err := a.Reset(t.Context(), wholeScope); err != nil {
				t.Error(err)
			}
		})
	}
}

// trimRemoveDelete takes a version away that objects are stored at, and deletes the CRD, which then hangs.
func trimRemoveDelete(t *testing.T, s *Server) {
	crds := crdClient(t, s.Config()).ApiextensionsV1().CustomResourceDefinitions()
	crd := createCRD(t, s.Config(), widgetCRD("v1alpha1", "v1beta1"))
	createWidget(t, s.Config(), "v1alpha1", "old")
	update := func(change func(), subresource ...string) {
		t.Helper()
		change()
		var err error
		if len(subresource) > 0 {
			crd, err = crds.UpdateStatus(t.Context(), crd, metav1.UpdateOptions{})
		} else {
			crd, err = crds.Update(t.Context(), crd, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	update(func() { crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true })
	update(func() { crd.Status.StoredVersions = []string{"v1beta1"} }, "status")
	update(func() { crd.Spec.Versions = crd.Spec.Versions[1:] })
	if err := crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion to fail", func() bool {
		now, err := crds.Get(t.Context(), crd.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range now.Status.Conditions {
			if c.Reason == "InstanceDeletionFailed" {
				return true
			}
		}
		return false
	})
}

// finalizerAndDelete leaves an object that waits for a controller, at a version that is not served.
func finalizerAndDelete(t *testing.T, s *Server) {
	crds := crdClient(t, s.Config()).ApiextensionsV1().CustomResourceDefinitions()
	crd := createCRD(t, s.Config(), widgetCRD("v1"))
	object := widget("v1", "held")
	object.SetFinalizers([]string{"lab.example.com/nobody"})
	_, err := dynamicClient(t, s.Config()).Resource(widgetsAt("v1")).Namespace(Namespace).
		Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Served = false
	if _, err := crds.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wrongRecord lets storedVersions name a version that is not there: no change of the spec is accepted any more.
func wrongRecord(t *testing.T, s *Server) {
	createCRD(t, s.Config(), widgetCRD("v1"))
	createWidget(t, s.Config(), "v1", "one")
	_, err := crdClient(t, s.Config()).ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), widgets.String(),
		types.MergePatchType, []byte(`{"status":{"storedVersions":["v1","v9"]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// deadWebhook leaves objects of which some can only be read through a webhook that does not answer.
func deadWebhook(t *testing.T, s *Server) {
	listener, err := s.ListenWebhook(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cert := certificateFor(t, listener.DNSNames)
	createCRD(t, s.Config(), webhookCRD(listener.Service, cert))
	createWidget(t, s.Config(), "v1alpha1", "one")
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAttachedResetLeavesAloneWhatIsNotTheLabs(t *testing.T) {
	s := startServer(t)
	a := attach(t, s)
	crd := widgetCRD("v1")
	crd.Labels = nil
	createCRD(t, s.Config(), crd)
	createWidget(t, s.Config(), "v1", "one")
	err := a.Reset(t.Context(), wholeScope)
	if !errors.Is(err, cluster.ErrForeign) || !strings.Contains(err.Error(), cluster.ManagedBy) {
		t.Errorf("%v, want cluster.ErrForeign", err)
	}
	_, err = dynamicClient(t, s.Config()).Resource(widgetsAt("v1")).Namespace(Namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Errorf("its object: %v", err)
	}
}

func TestTheKubeconfigIsPrivateAndGoesWithTheServer(t *testing.T) {
	s := startServer(t)
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "kubeconfig")
	for range 2 { // it may overwrite its own
		if err := s.WriteKubeconfig(elsewhere); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{s.kubeconfig, elsewhere} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode())
		}
		if _, err := crdClient(t, handConfig(t, path)).ApiextensionsV1().CustomResourceDefinitions().
			List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("with %s: %v", path, err)
		}
	}
	other := startServer(t)
	taken := filepath.Join(dir, "taken")
	for _, server := range []*Server{s, other} { // the place is taken by another server in between
		if err := server.WriteKubeconfig(taken); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(s.kubeconfig) || exists(elsewhere) {
		t.Error("a kubeconfig of a server that has ended is left")
	}
	if !exists(taken) {
		t.Error("the kubeconfig of another server was removed")
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

func TestAKubeconfigThatSomebodyHasAddedToIsLeftAlone(t *testing.T) {
	s := startServer(t)
	for name, add := range map[string]func(*clientcmdapi.Config){
		"cluster": func(c *clientcmdapi.Config) { c.Clusters["prod"] = &clientcmdapi.Cluster{Server: "https://prod"} },
		"user":    func(c *clientcmdapi.Config) { c.AuthInfos["prod"] = &clientcmdapi.AuthInfo{Token: "secret"} },
		"context": func(c *clientcmdapi.Config) { c.Contexts["prod"] = &clientcmdapi.Context{Cluster: contextName} },
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := s.WriteKubeconfig(path); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		add(config)
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		if err := s.WriteKubeconfig(path); err == nil || !strings.Contains(err.Error(), errShared.Error()) {
			t.Errorf("overwriting with another %s in it: %v", name, err)
		}
		defer func() {
			if !exists(path) {
				t.Errorf("with another %s in it, it was removed", name)
			}
		}()
		if _, err := Attach(path); err != nil {
			t.Errorf("it is of no use any more: %v", err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAForeignFileIsNotOverwritten(t *testing.T) {
	s := startServer(t)
	dir := t.TempDir()
	foreign, empty := filepath.Join(dir, "foreign"), filepath.Join(dir, "empty")
	text := []byte("apiVersion: v1\nkind: Config\n")
	for path, content := range map[string][]byte{foreign: text, empty: nil} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for path, why := range map[string]string{foreign: "crdlab did not write it", dir: "it is a folder"} {
		if err := s.WriteKubeconfig(path); err == nil || !strings.Contains(err.Error(), "will not overwrite "+path+": "+why) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got, err := os.ReadFile(foreign); err != nil || !slices.Equal(got, text) {
		t.Errorf("the foreign file is now %q, %v", got, err)
	}
	if err := s.WriteKubeconfig(empty); err != nil {
		t.Errorf("an empty file: %v", err)
	}
	if err := s.WriteKubeconfig(filepath.Join(dir, "none", "kubeconfig")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
}
