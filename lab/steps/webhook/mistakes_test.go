package webhook_test

import (
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/webhook"
)

const (
	crd = "kubectl patch crd widgets.lab.example.com "
	// addNew adds the new version, and says nothing of a webhook.
	addNew = crd + `--type=json -p '[{"op":"add","path":"/spec/versions/-","value":{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":` +
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"displayName":{"type":"string"},"replicas":{"type":"integer"}}}}}}}}]'`
	nobody     = crd + `--type=merge -p '{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"namespace":"nowhere","name":"nobody"}}}}}}'`
	none       = crd + `--type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`
	noneAlone  = crd + `--type=merge -p '{"spec":{"conversion":{"strategy":"None"}}}'`
	switchBack = crd + `--type=json -p '[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]'`
	switchOver = crd + `--type=json -p '[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]'`
	newAlone   = crd + `--type=json -p '[{"op":"remove","path":"/spec/versions/0"}]'`
	unserveNew = crd + `--type=json -p '[{"op":"replace","path":"/spec/versions/1/served","value":false}]'`
	serveNew   = crd + `--type=json -p '[{"op":"replace","path":"/spec/versions/1/served","value":true}]'`
	unserveOld = crd + `--type=json -p '[{"op":"replace","path":"/spec/versions/0/served","value":false}]'`
	trim       = crd + `--subresource=status --type=merge -p '{"status":{"storedVersions":["v1beta1"]}}'`
	untrim     = crd + `--subresource=status --type=merge -p '{"status":{"storedVersions":["v1alpha1","v1beta1"]}}'`
	rewriteAll = `for w in $(kubectl get widgets.v1beta1.lab.example.com -o name); do kubectl patch $w --type=merge -p '{}'; done`
)

func commands(c ...string) []string { return c }

var again = []string{labtest.Again}

var mistakes = []labtest.Mistake{
	{Step: "create", Wrong: "no-crd", Do: commands("kubectl get crd"), WayOn: commands(labtest.Shown)},
	{Step: "serve-both", Wrong: "objects-gone", Do: commands("kubectl delete widgets bravo"), WayOn: again},
	{Step: "serve-both", Wrong: "none", Do: commands(addNew), WayOn: commands(nobody)},
	{Step: "serve-both", Wrong: "unreachable", Do: commands("kubectl get widgets.v1beta1.lab.example.com alpha"), WayOn: commands(labtest.Shown)},
	{Step: "one-object-two-views", Wrong: "none-early", Do: commands(none), WayOn: again},
	{Step: "one-object-two-views", Wrong: "left-over", Do: commands("kubectl create -f - <<'EOF'\napiVersion: lab.example.com/v1beta1\nkind: Widget\nmetadata:\n  name: golf\nspec:\n  displayName: g\nEOF"),
		WayOn: commands("kubectl delete widgets golf")},
	{Step: "switch-storage", Wrong: "switched-back", Do: commands(switchOver, switchBack), WayOn: commands(switchOver)},
	{Step: "switch-storage", Wrong: "no-foxtrot", Do: commands("kubectl get crd"), WayOn: commands(labtest.Shown)},
	{Step: "update-one", Wrong: "more", Do: commands(`for w in bravo charlie; do kubectl patch widgets.v1beta1.lab.example.com $w --type=merge -p '{}'; done`), WayOn: again},
	{Step: "stop-serving", Wrong: "moved", Do: commands("kubectl patch widgets.v1beta1.lab.example.com delta --type=merge -p '{}'"), WayOn: again},
	{Step: "stop-serving", Wrong: "new-unserved", Do: commands(unserveNew), WayOn: commands(serveNew)},
	{Step: "stop-serving", Wrong: "nobody-asked", Do: commands(unserveOld), WayOn: commands(labtest.Shown)},
	{Step: "rewrite", Wrong: "removed-early", Do: commands(trim, newAlone), WayOn: again},
	{Step: "rewrite", Wrong: "trimmed-early", Do: commands(trim), WayOn: commands(untrim)},
	{Step: "rewrite", Wrong: "not-relabelled", Do: commands(rewriteAll), WayOn: commands(labtest.Shown)},
	{Step: "attempt-removal", Wrong: "removed", Do: commands(trim, newAlone), WayOn: again},
	{Step: "clean-up", Wrong: "no-webhook", Do: commands(noneAlone), WayOn: commands(trim)},
	{Step: "clean-up", Wrong: "webhook-left", Do: commands(newAlone), WayOn: commands(none)},
	{Step: "clean-up", Wrong: "nobody-applied", Do: commands("kubectl get crd"), WayOn: commands(labtest.Shown)},
}

func TestMistakesAreNamedWithTheWayOn(t *testing.T) {
	t.Parallel()
	labtest.Mistakes(t, webhook.Track, mistakes)
}

// TestAFaultThatWasLeftOnIsNamed: a step that fails because of it says so, and passes once it is switched off.
func TestAFaultThatWasLeftOnIsNamed(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, webhook.Track())
	if err := s.GoTo(t.Context(), "stop-serving"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetFault(t.Context(), "down"); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := s.State()
	now := state.Steps[state.Current]
	if now.Result != lesson.Failed || len(now.Hints) != 1 || !strings.Contains(now.Hints[0], state.Fault.Does) || !strings.Contains(now.Hints[0], "Press f") {
		t.Errorf("under %s the step %s: %v, it says %q", state.Fault.ID, now.Result, now.Err, now.Hints)
	}
	if err := s.SetFault(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if state = s.State(); state.Steps[state.Current].Phase != lab.Applied || state.Steps[state.Current].Result == lesson.Failed {
		if err := s.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if state = s.State(); state.Steps[state.Current].Result != lesson.Passed {
		t.Errorf("without it the step %s: %+v", state.Steps[state.Current].Result, state.Steps[state.Current].Checks)
	}
}
