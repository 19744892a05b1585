package kind_test

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/kind"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/storage"
)

// watched is a cluster whose writes can be counted.
type watched struct {
	*kind.Cluster
	passed func(*http.Request)
}

var _ cluster.Cluster = watched{}

// Config tells of every request before it is sent.
func (w watched) Config() *rest.Config {
	config := w.Cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, w.passed} })
	return config
}

type counted struct {
	next   http.RoundTripper
	passed func(*http.Request)
}

// RoundTrip sends it on.
func (t counted) RoundTrip(r *http.Request) (*http.Response, error) {
	t.passed(r)
	return t.next.RoundTrip(r)
}

// TestARewriteOutlivesAStopOfTheNode stops the node in the middle of a rewrite and starts it again: the run finishes, and
// the bytes are all at the new version.
func TestARewriteOutlivesAStopOfTheNode(t *testing.T) {
	const widgets, before = 300, 60
	c := theCluster(t)
	node := c.Nodes()[0]
	var mu sync.Mutex
	writes := -1 // not counted yet
	restarted := make(chan struct{})
	net := watched{c, func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if writes < 0 || r.Method != http.MethodPatch {
			return
		}
		if writes++; writes == before {
			go func() {
				defer close(restarted)
				docker(t, "stop", node)
				docker(t, "start", node)
			}()
		}
	}}
	s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: net, Widgets: widgets})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	if err := lab.Run(t.Context(), s, "switch-storage", func(*lab.Step) {}); err != nil || !s.Next() {
		t.Fatal(err)
	}
	mu.Lock()
	writes = 0
	mu.Unlock()
	if err := s.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-restarted
	now := s.State()
	step := now.Steps[now.Current]
	if step.Result != lesson.Passed || step.Err != nil {
		t.Fatalf("%s: %v, %+v", step.Result, step.Err, step.Checks)
	}
	from, err := c.Storage()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	counts, err := storage.Count(t.Context(), from, now.Resource)
	if err != nil || !reflect.DeepEqual(counts.ByVersion, map[string]int{"v1beta1": widgets + 1}) {
		t.Errorf("%+v, %v", counts, err)
	}
}
