package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodeImage names the image of the nodes of kind clusters; without it, nothing here runs.
const nodeImage = "CRDLAB_KIND_IMAGE"

// TestTheWholeTrackByKeysOnKind plays the interactive lab on a kind cluster, which goes on afterwards; the program says so, and
// how to remove it. The user's kubeconfig is not read and not written.
func TestTheWholeTrackByKeysOnKind(t *testing.T) {
	image := os.Getenv(nodeImage)
	if image == "" {
		t.Skipf("%s names no node image, or there is no container engine", nodeImage)
	}
	const name, user = "crdlab-keys", "apiVersion: v1\nkind: Config\n"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	state := t.TempDir()
	crdlab := func(args ...string) {
		t.Helper()
		c := exec.Command("crdlab", append(args, "--kind-name", name)...)
		c.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("crdlab %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	crdlab("cluster", "create", "--kind-image", image)
	t.Cleanup(func() { crdlab("cluster", "delete") })

	x := openIn(t, state, "crdlab", 160, 45, "--cluster", "kind", "--kind-name", name)
	x.begin()
	x.play(playedSteps)
	x.press("q")
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatalf("the program does not end\n%s", x.screen())
	}
	said, err := os.ReadFile(x.stderr)
	if err != nil || !strings.Contains(string(said), "crdlab cluster delete --kind-name "+name) {
		t.Errorf("it does not say that the cluster goes on: %q, %v", said, err)
	}
	if now, err := os.ReadFile(kubeconfig); err != nil || string(now) != user {
		t.Errorf("the user's kubeconfig is another: %q, %v", now, err)
	}
}
