package embedded

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The trick of the package quiet is only as good as the order in which Go initialises packages.
func TestQuietIsInitialisedBeforeWhatItKeepsQuiet(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, trace)
	}
	order := map[string]int{}
	for line := range strings.Lines(string(trace)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "init" {
			order[words[1]] = len(order) + 1
		}
	}
	first := order["github.com/crdlab/crdlab/lab/cluster/embedded/quiet"]
	if first == 0 {
		t.Fatalf("it is not initialised at all:\n%s", trace)
	}
	for _, later := range []string{
		"log", "google.golang.org/grpc/grpclog", "go.etcd.io/etcd/client/v3", "k8s.io/klog/v2",
		"k8s.io/apiserver/pkg/storage/storagebackend/factory", // has the one that cannot be told otherwise
	} {
		if order[later] < first {
			t.Errorf("%s is initialised as number %d, quiet as number %d", later, order[later], first)
		}
	}
}
