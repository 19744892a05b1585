package kind_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/kind"
)

const (
	// imageVariable names the image of the nodes; without it, nothing here runs that needs a cluster.
	imageVariable = "CRDLAB_KIND_IMAGE"
	// creatorCommand makes the test binary a process that creates a cluster, for tests that kill it.
	creatorCommand = "__creator"
	sharedName     = "crdlab-test"
	userKubeconfig = "apiVersion: v1\nkind: Config\n# the user's own\n"
)

// TestMain makes the test binary what the program is: it runs itself as the child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case kind.ChildCommand:
			os.Exit(kind.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
		case creatorCommand:
			os.Exit(creator(os.Args[2]))
		}
	}
	os.Exit(withFolders(m.Run))
}

// withFolders gives the tests a state folder of their own, and a kubeconfig that stands for the user's.
func withFolders(run func() int) int {
	dir, err := os.MkdirTemp("", "crdlab-kind-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	user := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(user, []byte(userKubeconfig), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("KUBECONFIG", user)
	code := run()
	if shared.cluster != nil {
		if err := kind.Delete(context.Background(), sharedName); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	entries, err := os.ReadDir(dir)
	now, _ := os.ReadFile(user)
	if err != nil || string(now) != userKubeconfig {
		fmt.Fprintf(os.Stderr, "the user's kubeconfig was touched: %v %s", entries, now)
		code = 1
	}
	return code
}

// creator creates a cluster and says how it goes on, until it is killed.
func creator(name string) int {
	_, err := kind.Create(context.Background(), kind.Options{Name: name, Image: os.Getenv(imageVariable),
		OnPhase: func(p cluster.Phase) { fmt.Println(p.Name) }})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// image is the nodes' image. Where there is none, or no runtime, the test is skipped.
func image(t testing.TB) string {
	t.Helper()
	name := os.Getenv(imageVariable)
	if name == "" {
		t.Skipf("%s names no node image", imageVariable)
	}
	if _, err := kind.List(t.Context()); err != nil {
		t.Skip(err)
	}
	return name
}

var shared struct {
	sync.Once
	cluster *kind.Cluster
	phases  []cluster.Phase
	err     error
}

// theCluster is one that all tests share; the end of the tests deletes it.
func theCluster(t testing.TB) *kind.Cluster {
	t.Helper()
	name := image(t)
	shared.Do(func() {
		shared.cluster, shared.err = kind.Create(context.Background(), kind.Options{Name: sharedName, Image: name,
			OnPhase: func(p cluster.Phase) { shared.phases = append(shared.phases, p) }})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// docker runs the container runtime's program: the tests of single containers know only this one.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("it looks at the containers with docker:", err)
	}
	var complaint bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, complaint.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// containers are those of a cluster, stopped ones included.
func containers(t testing.TB, name string) string {
	t.Helper()
	return docker(t, "ps", "-a", "--filter", "label=io.x-k8s.kind.cluster="+name, "--format", "{{.Names}}")
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("in vain waited for: " + what)
		}
	}
}
