package kind_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/existing"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

// TestLearnersShareAClusterThatIsThereAlready takes the cluster for one of which only a kubeconfig is known: its bytes come
// through etcdctl in etcd's pod. Two learners run at once, and a reset of one leaves the other alone.
func TestLearnersShareAClusterThatIsThereAlready(t *testing.T) {
	path, _ := theCluster(t).Kubeconfig()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	learners := map[string]*lab.Session{}
	clusters := map[string]*existing.Cluster{}
	for _, name := range []string{"ana", "ben"} {
		c, err := existing.Connect(t.Context(), existing.Options{Kubeconfig: config, Context: config.CurrentContext, Namespace: lab.Namespace(name)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		if err := c.Begin(); err != nil {
			t.Fatal(err)
		}
		clusters[name] = c
		if learners[name], err = lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: c, Learner: name}); err != nil {
			t.Fatal(err)
		}
		defer learners[name].Close(context.Background())
		if err := c.CheckRights(t.Context(), learners[name].Scope()); err != nil {
			t.Error(err)
		}
	}
	var both sync.WaitGroup
	for name, s := range learners {
		both.Go(func() {
			if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
				for _, check := range step.Checks {
					if check.Result != lesson.Passed {
						t.Errorf("%s: %s/%s: %+v", name, step.ID, check.ID, check)
					}
				}
			}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	both.Wait()
	for name, s := range learners {
		if now := s.State(); now.Result() != lesson.Passed || !now.Live.Stored.Access || now.Live.Stored.Total != 6 {
			t.Errorf("%s: %s, %+v", name, now.Result(), now.Live.Stored)
		}
	}
	if err := clusters["ana"].Reset(t.Context(), learners["ana"].Scope()); err != nil {
		t.Fatal(err)
	}
	client, err := evidence.NewClient(clusters["ben"].Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for path, want := range map[string]int{
		evidence.DefinitionPath(learners["ana"].Scope().Resource):                                 http.StatusNotFound,
		"/api/v1/namespaces/crdlab-ana":                                                           http.StatusNotFound,
		evidence.ObjectPath(learners["ben"].Scope().Resource, "v1beta1", "crdlab-ben", "foxtrot"): http.StatusOK,
	} {
		if r, err := client.Get(t.Context(), path, nil); err != nil || r.Status != want {
			t.Errorf("%s: %+v, %v, want %d", path, r, err, want)
		}
	}
	if err := clusters["ben"].Reset(t.Context(), learners["ben"].Scope()); err != nil {
		t.Error(err)
	}
}
