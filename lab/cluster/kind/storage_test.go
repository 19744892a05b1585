package kind_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/kind"
	"github.com/crdlab/crdlab/lab/storage"
)

func TestStoredValuesAreWhatTheAPIServerKeeps(t *testing.T) {
	s := newScene(t)
	from := s.storage()
	s.create("v1", "one")
	s.create("v2", "two")
	for _, name := range []string{"one", "two"} {
		value, err := from.Get(t.Context(), s.resource, namespace, name)
		s.must(err)
		var stored, served metav1.PartialObjectMetadata
		s.must(json.Unmarshal(value.Data, &stored))
		s.must(json.Unmarshal(s.accepted(s.get("v1", name), nil).Body, &served))
		if value.Version() != "v1" || stored.UID != served.UID || strconv.FormatInt(value.ModRevision, 10) != served.ResourceVersion {
			t.Errorf("%s: stored as %s, %s at %d; served %s at %s", name, value.Version(), stored.UID, value.ModRevision,
				served.UID, served.ResourceVersion)
		}
	}
	counts, err := storage.Count(t.Context(), from, s.resource)
	if err != nil || counts.Total != 2 || counts.ByVersion["v1"] != 2 {
		t.Errorf("%+v, %v", counts, err)
	}
	if _, err := from.Get(t.Context(), s.resource, namespace, "three"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// TestReadingGoesOnWhenEtcdStartsAgain also holds a watch meanwhile.
func TestReadingGoesOnWhenEtcdStartsAgain(t *testing.T) {
	s := newScene(t)
	from := s.storage()
	s.create("v1", "one")
	start, err := from.Revision(t.Context())
	s.must(err)
	changes := from.Watch(t.Context(), s.resource, start)
	node := s.cluster.Nodes()[0]
	before := docker(t, "exec", node, "pidof", "etcd")
	docker(t, "exec", node, "pkill", "-KILL", "-x", "etcd")
	begun := time.Now()
	eventually(t, "values can be read again", func() bool {
		_, err := from.Get(t.Context(), s.resource, namespace, "one")
		return err == nil
	})
	t.Logf("read again %s after etcd was killed", time.Since(begun))
	if after := docker(t, "exec", node, "pidof", "etcd"); after == before {
		t.Fatalf("etcd is still %s", after)
	}
	eventually(t, "the API server writes again", func() bool { return s.tryCreate("v1", "two") })
	for {
		b := <-changes
		s.must(b.Err)
		for _, c := range b.Changes {
			if c.Value != nil && c.Value.Name == "two" {
				return
			}
		}
	}
}

// TestCreateStartsStoppedNodes also holds a reader meanwhile.
func TestCreateStartsStoppedNodes(t *testing.T) {
	s := newScene(t)
	from := s.storage()
	s.create("v1", "one")
	node := s.cluster.Nodes()[0]
	docker(t, "stop", node)
	var phases []string
	again, err := kind.Create(t.Context(), kind.Options{Name: sharedName, OnPhase: func(p cluster.Phase) { phases = append(phases, p.Name) }})
	s.must(err)
	defer again.Close(t.Context())
	if !slices.Equal(phases, []string{"Starting the stopped nodes", "Starting the stopped nodes"}) {
		t.Errorf("%q", phases)
	}
	for name, r := range map[string]storage.Reader{"opened before": from, "opened after": func() storage.Reader {
		r, err := again.Storage()
		s.must(err)
		return r
	}()} {
		eventually(t, "values can be read by the reader "+name, func() bool {
			_, err := r.Get(t.Context(), s.resource, namespace, "one")
			return err == nil
		})
	}
	eventually(t, "the API server writes again", func() bool { return s.tryCreate("v1", "two") })
}

func TestAnotherNodesEtcdIsTriedWhereOneDoesNotAnswer(t *testing.T) {
	s := newScene(t)
	s.create("v1", "one")
	real := s.cluster.Nodes()
	s.cluster.Nodes("gone-control-plane", real[0])
	defer s.cluster.Nodes(real...)
	if _, err := s.storage().Get(t.Context(), s.resource, namespace, "one"); err != nil {
		t.Error(err)
	}
	s.cluster.Nodes("gone-control-plane")
	if _, err := s.cluster.Storage(); !errors.Is(err, storage.ErrNoAccess) || !strings.Contains(err.Error(), "etcd-gone-control-plane") {
		t.Errorf("%v, want ErrNoAccess, and the pod", err)
	}
}

// BenchmarkCount prints how many stored values are read in a second.
func BenchmarkCount(b *testing.B) {
	s := newScene(b)
	const n = 5000
	for i := range n {
		s.create("v1", fmt.Sprintf("gadget-%04d", i))
	}
	from := s.storage()
	for b.Loop() {
		counts, err := storage.Count(b.Context(), from, s.resource)
		if err != nil || counts.Total != n {
			b.Fatalf("%+v, %v", counts, err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "values/s")
}
