package kind

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestTheNameIsOneThatKindTakes(t *testing.T) {
	for name, good := range map[string]bool{
		"crdlab": true, "a": true, "a.b-c9": true, strings.Repeat("a", 50): true,
		"": false, "-a": false, "a-": false, "A": false, "a/b": false, "../a": false, strings.Repeat("a", 51): false,
	} {
		if err := checkName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestKubeconfigPointsToTheLabsNamespace(t *testing.T) {
	const kinds = `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"kind-a","cluster":{"server":"https://127.0.0.1:1"}}],` +
		`"users":[{"name":"kind-a","user":{"token":"t"}}],"contexts":[{"name":"kind-a","context":{"cluster":"kind-a","user":"kind-a"}}],` +
		`"current-context":"kind-a"}`
	data, err := ownKubeconfig([]byte(kinds))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Contexts["kind-a"]; c == nil || c.Namespace != "crdlab" || config.CurrentContext != "kind-a" {
		t.Errorf("%s", data)
	}
	for _, bad := range []string{"[", `{"apiVersion":"v1","kind":"Config","current-context":"b"}`} {
		if _, err := ownKubeconfig([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestOneAtATimeWorksOnACluster(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	first, err := newFolder(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*pollInterval)
	defer cancel()
	if _, err := newFolder(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another crdlab") {
		t.Errorf("%v", err)
	}
	other, err := newFolder(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other.unlock()
	first.remove()
	second, err := newFolder(t.Context(), "a") // the folder that was locked is not there any more
	if err != nil {
		t.Fatal(err)
	}
	first.unlock()
	if info, err := os.Stat(second.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	second.unlock()
}
