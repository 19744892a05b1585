package kind_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/kind"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

func TestCreateSaysHowItGoesOn(t *testing.T) {
	c := theCluster(t)
	if info := c.Info(); info.Type != "kind" || info.Version == "" || len(info.Lacks) != 0 {
		t.Errorf("%+v", info)
	}
	begun := map[string]int{}
	for _, p := range shared.phases {
		t.Logf("%-60s done %-5v %s", p.Name, p.Done, p.Took)
		if begun[p.Name]++; p.Done != (begun[p.Name] == 2) || p.Done != (p.Took > 0) {
			t.Errorf("%+v", p)
		}
	}
	if begun["Preparing nodes"] != 2 || begun["Starting control-plane"] != 2 {
		t.Errorf("%v", begun)
	}
}

func TestTheKubeconfigIsTheLabsOwn(t *testing.T) {
	c := theCluster(t)
	path, flags := c.Kubeconfig()
	if found, err := kind.Kubeconfig(sharedName); err != nil || found != path || flags != "" {
		t.Errorf("%q, %v; want %q; flags %q", found, err, path, flags)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "kind-"+sharedName || config.Contexts[config.CurrentContext].Namespace != "crdlab" {
		t.Errorf("%+v", config.Contexts)
	}
	if user, err := os.ReadFile(os.Getenv("KUBECONFIG")); err != nil || string(user) != userKubeconfig {
		t.Errorf("the user's kubeconfig is now %s, %v", user, err)
	}
}

func TestCreateTakesUpWhatIsThere(t *testing.T) {
	theCluster(t)
	names, err := kind.List(t.Context())
	if err != nil || !slices.Contains(names, sharedName) {
		t.Errorf("%v, %v", names, err)
	}
	before := docker(t, "ps", "-q", "--no-trunc", "--filter", "name="+sharedName)
	again, err := kind.Create(t.Context(), kind.Options{Name: sharedName, OnPhase: func(p cluster.Phase) { t.Errorf("%+v", p) }})
	if err != nil {
		t.Fatal(err)
	}
	if after := docker(t, "ps", "-q", "--no-trunc", "--filter", "name="+sharedName); after != before {
		t.Errorf("container %s, was %s", after, before)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheMigrationPasses(t *testing.T) {
	c := theCluster(t)
	s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: c})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	err = lab.Run(t.Context(), s, "", func(step *lab.Step) {
		t.Logf("%s: %s", step.ID, step.Result)
		for _, check := range step.Checks {
			if check.Result != lesson.Passed {
				t.Errorf("%s/%s: %+v", step.ID, check.ID, check)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	now := s.State()
	if now.Result() != lesson.Passed || now.Current != len(now.Steps)-1 {
		t.Errorf("%s at %s", now.Result(), now.Steps[now.Current].ID)
	}
	begun := time.Now()
	if err := s.Reset(t.Context()); err != nil { // and it can begin again
		t.Fatal(err)
	}
	t.Logf("reset in %s", time.Since(begun))
	if err := s.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = s.State()
	if err := c.Reset(t.Context(), cluster.Scope{Resource: now.Resource, Namespace: now.Namespace}); err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, c)
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), now.Namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v, want NotFound", err)
	}
}

func TestResetLeavesAloneWhatIsNotTheLabs(t *testing.T) {
	s := newScene(t)
	s.create("v1", "one")
	const foreign = "crdlab-foreign"
	spaces := clientFor(t, s.cluster).CoreV1().Namespaces()
	if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreign}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scope := cluster.Scope{Resource: s.resource, Namespace: foreign}
	s.label("")
	if err := s.cluster.Reset(t.Context(), scope); !errors.Is(err, cluster.ErrForeign) || s.get("v1", "one").Status != http.StatusOK {
		t.Errorf("%v, want ErrForeign", err)
	}
	s.label(cluster.Maker)
	if err := s.cluster.Reset(t.Context(), scope); err != nil {
		t.Error(err)
	}
	if there, err := spaces.Get(t.Context(), foreign, metav1.GetOptions{}); err != nil || there.DeletionTimestamp != nil {
		t.Errorf("the namespace: %+v, %v", there, err)
	}
	if err := spaces.Delete(t.Context(), foreign, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func clientFor(t testing.TB, c *kind.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestInterruptedCreationLeavesNothing interrupts it where the containers are being made, and where they run.
func TestInterruptedCreationLeavesNothing(t *testing.T) {
	img := image(t)
	for _, during := range []string{"Preparing nodes", "Starting control-plane"} {
		t.Run(during, func(t *testing.T) {
			const name = "crdlab-interrupted"
			ctx, interrupt := context.WithCancel(t.Context())
			var at time.Time
			_, err := kind.Create(ctx, kind.Options{Name: name, Image: img, OnPhase: func(p cluster.Phase) {
				if p.Name == during && !p.Done {
					at = time.Now()
					interrupt()
				}
			}})
			took := time.Since(at)
			t.Logf("%s after the interrupt: %v", took, err)
			if !errors.Is(err, context.Canceled) || took > 5*time.Second {
				t.Errorf("%s: %v", took, err)
			}
			if left := containers(t, name); left != "" {
				t.Errorf("left: %s", left)
			}
			if err := kind.Delete(t.Context(), name); !errors.Is(err, kind.ErrNoCluster) {
				t.Errorf("%v, want ErrNoCluster", err)
			}
		})
	}
}

// TestKilledCreatorLeavesNothing kills the process that creates a cluster, which cannot tidy up any more.
func TestKilledCreatorLeavesNothing(t *testing.T) {
	img := image(t)
	const name = "crdlab-killed"
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, creatorCommand, name)
	cmd.Env = append(os.Environ(), imageVariable+"="+img)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Starting control-plane") {
			_ = cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	eventually(t, "the containers to be gone", func() bool { return containers(t, name) == "" })
	// Who removes them holds the lock until nothing can come any more.
	if err := kind.Delete(t.Context(), name); !errors.Is(err, kind.ErrNoCluster) {
		t.Errorf("%v, want ErrNoCluster", err)
	}
}

func TestAFailedCreationSaysWhyAndLeavesNothing(t *testing.T) {
	image(t)
	const name, missing = "crdlab-failed", "localhost:1/no/such:image"
	_, err := kind.Create(t.Context(), kind.Options{Name: name, Image: missing})
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "rror") {
		t.Errorf("%v", err)
	}
	t.Log(err)
	if left := containers(t, name); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestDeleteRemovesClusterAndKubeconfig(t *testing.T) {
	img := image(t)
	const name = "crdlab-deleted"
	c, err := kind.Create(t.Context(), kind.Options{Name: name, Image: img})
	if err != nil {
		t.Fatal(err)
	}
	path, _ := c.Kubeconfig()
	if err := kind.Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if left := containers(t, name); left != "" {
		t.Errorf("left: %s", left)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig: %v", err)
	}
	if _, err := kind.Kubeconfig(name); !errors.Is(err, kind.ErrNoCluster) {
		t.Errorf("%v, want ErrNoCluster", err)
	}
}
