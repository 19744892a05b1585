package existing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/cluster/existing"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
	"github.com/crdlab/crdlab/lab/storage"
)

// user is somebody's kubeconfig with one context, of an embedded server that knows nothing of the lab.
type user struct {
	config   *clientcmdapi.Config
	path     string
	endpoint string // of etcd
	written  []byte
}

const userContext = "theirs"

// newUser starts a server, and writes the kubeconfig that a person would have of it.
func newUser(t *testing.T) *user {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	server, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(context.Background()) })
	u := &user{path: filepath.Join(t.TempDir(), "config")}
	path, _ := server.Kubeconfig()
	from, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range from.Clusters {
		var extension struct{ Endpoint string }
		for _, e := range c.Extensions {
			if err := json.Unmarshal(e.(*runtime.Unknown).Raw, &extension); err != nil {
				t.Fatal(err)
			}
		}
		u.endpoint, c.Extensions = extension.Endpoint, nil
		from.Contexts[userContext] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "theirs"}
	}
	from.Contexts["unused"] = from.Contexts[from.CurrentContext]
	if err := clientcmd.WriteToFile(*from, u.path); err != nil {
		t.Fatal(err)
	}
	if u.written, err = os.ReadFile(u.path); err != nil {
		t.Fatal(err)
	}
	if u.config, err = clientcmd.LoadFromFile(u.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if now, err := os.ReadFile(u.path); err != nil || string(now) != string(u.written) {
			t.Errorf("the user's kubeconfig was changed: %v\n%s", err, now)
		}
	})
	return u
}

// connect takes the cluster up for a learner, with the bytes or without.
func (u *user) connect(t *testing.T, learner string, bytes bool) *existing.Cluster {
	t.Helper()
	o := existing.Options{Kubeconfig: u.config, Context: userContext, Namespace: lab.Namespace(learner)}
	if bytes {
		o.Etcd.Endpoints = []string{u.endpoint}
	}
	c, err := existing.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func scope(t *testing.T, c cluster.Cluster, learner string) cluster.Scope {
	t.Helper()
	s, err := lab.Scope(migrate.Track(), learner, c.Info())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNobodysEtcdIsWrittenTo: an etcd that can be read is not one that the lab may put bytes into; tracks that need that are not
// offered.
func TestNobodysEtcdIsWrittenTo(t *testing.T) {
	c := newUser(t).connect(t, "ana", true)
	can, err := lab.Look(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !can.Can(lesson.NeedsBytes) || can.Can(lesson.NeedsRestore) {
		t.Errorf("the bytes were to be read, and not to be written: %+v", can)
	}
	if why := can.Unavailable(pitfalls.RestoredBytes()); !strings.Contains(why, string(lesson.NeedsRestore)) {
		t.Errorf("the track that writes bytes is offered, or it is not said why not: %q", why)
	}
}

func TestTheLearnersKubeconfigIsTheLabsOwn(t *testing.T) {
	u := newUser(t)
	c := u.connect(t, "ana", false)
	path, _ := c.Kubeconfig()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Contexts) != 1 || config.CurrentContext != userContext || config.Contexts[userContext].Namespace != "crdlab-ana" {
		t.Errorf("%+v", config.Contexts)
	}
	if removed, err := embedded.RemoveLeftovers(); len(removed) > 0 || err != nil {
		t.Errorf("taken for a leftover: %v, %v", removed, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// TestResetRemovesWhateverIsLeft leaves the CRD in states that tracks and people leave behind, and resets with the bytes and
// without them.
func TestResetRemovesWhateverIsLeft(t *testing.T) {
	for name, spoil := range map[string]func(*scene){
		"as a run ends": func(s *scene) { s.run("") },
		"in the middle": func(s *scene) { s.run("switch-storage") },
		"trimmed and removed too early": func(s *scene) {
			s.run("switch-storage")
			s.patch("/status", `{"status":{"storedVersions":["v1beta1"]}}`)
			s.drop("v1alpha1")
		},
		"stuck in deletion": func(s *scene) {
			s.run("switch-storage")
			s.patch("/status", `{"status":{"storedVersions":["v1beta1"]}}`)
			s.drop("v1alpha1")
			s.ok(s.client.Delete(s.Context(), evidence.DefinitionPath(s.scope.Resource)))
		},
		"a finalizer that nobody takes off": func(s *scene) {
			s.run("create-v1alpha1")
			s.ok(s.client.Patch(s.Context(), evidence.ObjectPath(s.scope.Resource, "v1alpha1", s.scope.Namespace, "alpha"),
				evidence.MergePatch, "test", []byte(`{"metadata":{"finalizers":["example.com/never"]}}`)))
			s.ok(s.client.Delete(s.Context(), evidence.DefinitionPath(s.scope.Resource)))
		},
		"a webhook that is dead": func(s *scene) {
			s.run("switch-storage")
			s.patch("", `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{`+
				`"service":{"namespace":"crdlab-ana","name":"crdlab-webhook","port":443}}}}}}`)
		},
		"a webhook that is dead, in deletion": func(s *scene) {
			s.run("switch-storage")
			s.patch("", `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{`+
				`"url":"https://127.0.0.1:1/"}}}}}`)
			s.ok(s.client.Delete(s.Context(), evidence.DefinitionPath(s.scope.Resource)))
		},
		"the namespace alone": func(s *scene) {
			s.run("create-v1alpha1")
			s.must(cluster.Remove(s.Context(), s.cluster, s.scope.Resource))
		},
	} {
		for _, bytes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, bytes %v", name, bytes), func(t *testing.T) {
				u := newUser(t)
				s := newScene(t, u.connect(t, "ana", true))
				spoil(s)
				c := u.connect(t, "ana", bytes)
				s.must(c.Reset(t.Context(), s.scope))
				if r, err := s.client.Get(t.Context(), evidence.DefinitionPath(s.scope.Resource), nil); err != nil || r.Status != http.StatusNotFound {
					t.Errorf("the CRD: %v, %v", r, err)
				}
				if _, err := s.spaces.CoreV1().Namespaces().Get(t.Context(), s.scope.Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("the namespace: %v", err)
				}
				from, err := s.cluster.Storage()
				s.must(err)
				defer from.Close()
				if counts, err := storage.Count(t.Context(), from, s.scope.Resource); err != nil || counts.Total > 0 {
					t.Errorf("in etcd: %+v, %v", counts, err)
				}
			})
		}
	}
}

// scene is a learner's lab on the user's cluster.
type scene struct {
	*testing.T
	cluster *existing.Cluster
	scope   cluster.Scope
	client  *evidence.Client
	spaces  kubernetes.Interface
}

func newScene(t *testing.T, c *existing.Cluster) *scene {
	t.Helper()
	s := &scene{T: t, cluster: c, scope: scope(t, c, "ana")}
	var err error
	s.client, err = evidence.NewClient(c.Config(), nil)
	s.must(err)
	t.Cleanup(s.client.Close)
	s.spaces, err = kubernetes.NewForConfig(c.Config())
	s.must(err)
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) ok(r *evidence.Response, err error) {
	s.Helper()
	if err == nil {
		err = r.Err()
	}
	s.must(err)
}

func (s *scene) run(until string) {
	s.Helper()
	session, err := lab.Open(s.Context(), lab.Options{Track: migrate.Track(), Cluster: s.cluster, Learner: "ana"})
	s.must(err)
	s.must(lab.Run(s.Context(), session, until, func(step *lab.Step) {
		if step.Err != nil || step.Result != "passed" {
			s.Fatalf("%s: %s, %v", step.ID, step.Result, step.Err)
		}
	}))
	s.must(session.Close(s.Context()))
}

func (s *scene) patch(subresource, patch string) {
	s.Helper()
	s.ok(s.client.Patch(s.Context(), evidence.DefinitionPath(s.scope.Resource)+subresource, evidence.MergePatch, "test", []byte(patch)))
}

// drop takes a version, which is the first, out of spec.versions.
func (s *scene) drop(version string) {
	s.Helper()
	s.ok(s.client.Patch(s.Context(), evidence.DefinitionPath(s.scope.Resource), evidence.JSONPatch, "test",
		[]byte(`[{"op":"test","path":"/spec/versions/0/name","value":"`+version+`"},{"op":"remove","path":"/spec/versions/0"}]`)))
}

func TestAnothersLabIsLeftAlone(t *testing.T) {
	u := newUser(t)
	s := newScene(t, u.connect(t, "ana", true))
	s.run("create-v1alpha1")
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // somebody else
	c := u.connect(t, "ana", true)
	other := scope(t, c, "ana")
	if other.Owner == s.scope.Owner || other.Owner == "" {
		t.Fatalf("the ids %q and %q", other.Owner, s.scope.Owner)
	}
	if err := c.Reset(t.Context(), other); !errors.Is(err, cluster.ErrTaken) {
		t.Errorf("reset: %v", err)
	}
	if _, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: c, Learner: "ana"}); !errors.Is(err, cluster.ErrTaken) {
		t.Errorf("open: %v", err)
	}
	s.ok(s.client.Get(t.Context(), evidence.ObjectPath(s.scope.Resource, "v1alpha1", s.scope.Namespace, "alpha"), nil))
}

func TestAWebhookNeedsAnAddress(t *testing.T) {
	u := newUser(t)
	for address, want := range map[string]string{
		"":             "give --webhook-address HOST[:PORT]",
		"127.0.0.1":    "means another machine",
		"localhost:9":  "means another machine",
		"[::1]:9443":   "means another machine",
		"name.invalid": "give --webhook-address an IP address",
	} {
		c, err := existing.Connect(t.Context(), existing.Options{Kubeconfig: u.config, Context: userContext, Namespace: "crdlab-ana", Webhook: address})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ListenWebhook(t.Context()); !errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	for _, address := range []string{"host:port", ":9443", "host:70000", "[::1"} {
		if _, err := existing.Connect(t.Context(), existing.Options{Kubeconfig: u.config, Context: userContext, Webhook: address}); err == nil ||
			!strings.Contains(err.Error(), "for example 192.0.2.7:9443") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAnEtcdThatDoesNotAnswerIsNoSilence(t *testing.T) {
	u := newUser(t)
	c, err := existing.Connect(t.Context(), existing.Options{Kubeconfig: u.config, Context: userContext,
		Etcd: existing.Etcd{Endpoints: []string{"unix://" + filepath.Join(t.TempDir(), "none")}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Storage(); err == nil || errors.Is(err, storage.ErrNoAccess) || !strings.Contains(err.Error(), "check the flags --etcd-...") {
		t.Errorf("%v", err)
	}
}
