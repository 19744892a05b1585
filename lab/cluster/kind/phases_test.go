package kind

import (
	"slices"
	"testing"

	"github.com/crdlab/crdlab/lab/cluster"
)

func TestPhasesAreReadFromKindsLog(t *testing.T) {
	var got []cluster.Phase
	p := newPhases(func(p cluster.Phase) { got = append(got, p) })
	p.V(0).Infof("Creating cluster %q ...\n", "crdlab")
	p.V(0).Infof(" • %s  ...\n", "Ensuring node image (crdlab/kind-node:v1.37.2) 🖼 ")
	p.V(0).Infof(" ✓ %s\n", "Ensuring node image (crdlab/kind-node:v1.37.2) 🖼 ")
	p.V(1).Info(" • a detail")
	p.V(0).Infof(" • %s  ...\n", "Starting control-plane 🕹️")
	p.V(0).Infof(" ✗ %s\n", "Starting control-plane 🕹️")
	p.V(0).Infof(" • %s  ...\n", "Waiting ≤ 2m0s for control-plane = Ready ⏳")
	p.V(0).Info(" • Ready after 5s 💚")
	want := []string{
		"Ensuring node image (crdlab/kind-node:v1.37.2)", "Ensuring node image (crdlab/kind-node:v1.37.2)",
		"Starting control-plane", "Waiting ≤ 2m0s for control-plane = Ready",
	}
	var names []string
	for i, p := range got {
		names = append(names, p.Name)
		if p.Done != (i == 1) {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
