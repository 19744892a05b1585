package migrate_test

import (
	"fmt"
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/verdict"
	"github.com/crdlab/crdlab/manifests"
)

const (
	crd = "kubectl patch crd widgets.lab.example.com "
	// ownNamespace is where the lab works.
	ownNamespace = "crdlab"
)

// patch is a JSON patch of the CRD.
func patch(operations string) string { return crd + "--type=json -p '[" + operations + "]'" }

// set replaces a field of the CRD's version that stands at a place in spec.versions.
func set(place int, field string, value any) string {
	return fmt.Sprintf(`{"op":"add","path":"/spec/versions/%d/%s","value":%v}`, place, field, value)
}

// declare sets storedVersions by /status.
func declare(versions string) string {
	return crd + `--subresource=status --type=merge -p '{"status":{"storedVersions":[` + versions + `]}}'`
}

// apply pipes the manifest of an action into a command.
func apply(command, step, action string) string {
	body, err := manifests.Render("migrate", step, action, manifests.Data{Group: "lab.example.com"})
	if err != nil {
		panic(err) // the manifests are part of the program
	}
	return command + " -f - <<'EOF'\n" + string(body) + "EOF"
}

// widget is an object that no step makes.
func widget(name string) string {
	return "kubectl apply -f - <<'EOF'\napiVersion: lab.example.com/v1alpha1\nkind: Widget\nmetadata:\n  name: " + name + "\nspec:\n  size: 1\nEOF"
}

// versionEntry adds an entry to the end of spec.versions.
func versionEntry(place any, name string, served, storage bool) string {
	return fmt.Sprintf(`{"op":"add","path":"/spec/versions/%v","value":{"name":%q,"served":%v,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object",`+
		`"properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"},"color":{"type":"string"}}}}}}}}`, place, name, served, storage)
}

const (
	removeOld  = `{"op":"remove","path":"/spec/versions/0"}`
	switchBack = `{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}`
	switchOver = `{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}`
	both       = `"v1alpha1","v1beta1"`
	rewriteAll = `for w in $(kubectl get widgets.v1beta1.lab.example.com -o name); do kubectl patch $w --type=merge -p '{}'; done`
)

var again = []string{labtest.Again}

func commands(c ...string) []string { return c }

var mistakes = []labtest.Mistake{
	// the CRD, the namespace, the objects
	{Step: "create-v1alpha1", Wrong: "no-crd", Do: commands("kubectl get crd widgets.lab.example.com"), WayOn: commands(apply("kubectl apply", "create-v1alpha1", "crd"))},
	{Step: "create-v1alpha1", Wrong: "not-the-team", Do: commands(apply("kubectl apply", "create-v1alpha1", "team")),
		WayOn: commands("kubectl delete widgets charlie", apply("kubectl apply --server-side --field-manager=team", "create-v1alpha1", "team"))},
	{Step: "create-v1alpha1", Wrong: "never-sent", Do: commands(widget("bravo")),
		WayOn: commands("kubectl delete widgets bravo", apply("kubectl apply --validate=warn", "create-v1alpha1", "unknown-field"))},
	{Step: "create-v1alpha1", Wrong: "not-strict", Do: commands(apply("kubectl apply --validate=warn", "create-v1alpha1", "unknown-field")),
		WayOn: commands(apply("kubectl apply --dry-run=server", "create-v1alpha1", "unknown-field"))},
	{Step: "create-v1alpha1", Wrong: "misnamed", Do: commands(widget("yankee"), widget("zulu"), widget("xray")), WayOn: commands("kubectl delete widgets xray")},
	{Step: "create-v1alpha1", Wrong: "too-many", Do: commands(widget("xray"), widget("whiskey")),
		WayOn: commands("kubectl delete widgets yankee zulu xray whiskey victor")},
	{Step: "create-v1alpha1", Wrong: "too-early", Do: commands(apply("kubectl apply", "add-v1beta1", "crd")), WayOn: again},
	{Step: "add-v1beta1", Wrong: "crd-gone", Do: commands("kubectl delete crd widgets.lab.example.com"), WayOn: again},
	{Step: "add-v1beta1", Wrong: "crd-anew", Do: commands("kubectl delete crd widgets.lab.example.com", apply("kubectl apply", "add-v1beta1", "crd")), WayOn: again},
	{Step: "add-v1beta1", Wrong: "objects-gone", Do: commands("kubectl delete widgets --all"), WayOn: again},
	{Step: "add-v1beta1", Wrong: "written", Do: commands("kubectl label widgets alpha a=b"), WayOn: again},
	{Step: "add-v1beta1", Wrong: "elsewhere", Do: commands(widget("zulu")+" -n default", "kubectl create ns other", "kubectl config set-context --current --namespace=other", widget("alpha")),
		WayOn: commands("kubectl delete widgets -n other alpha", "kubectl config set-context --current --namespace="+ownNamespace)},
	{Step: "add-v1beta1", Wrong: "switched-early", Do: commands(patch(versionEntry("-", "v1beta1", true, true) + "," + set(0, "storage", false))), WayOn: again},
	{Step: "add-v1beta1", Wrong: "recorded-early", Do: commands(patch(versionEntry("-", "v1beta1", true, true)+","+set(0, "storage", false)), patch(switchBack)), WayOn: again},
	{Step: "add-v1beta1", Wrong: "one-storage", Do: commands(patch(versionEntry("-", "v1beta1", true, true))), WayOn: commands(apply("kubectl apply", "add-v1beta1", "crd"))},
	{Step: "deprecate-v1alpha1", Wrong: "namespace-gone", Do: commands("kubectl delete ns " + ownNamespace), WayOn: again},
	{Step: "deprecate-v1alpha1", Wrong: "objects-gone", Do: commands("kubectl delete widgets.v1beta1.lab.example.com alpha"), WayOn: again},
	{Step: "deprecate-v1alpha1", Wrong: "new-gone", Do: commands(apply("kubectl apply", "create-v1alpha1", "crd")), WayOn: commands(apply("kubectl apply", "add-v1beta1", "crd"))},
	{Step: "deprecate-v1alpha1", Wrong: "new-unserved", Do: commands(patch(set(1, "served", false))), WayOn: commands(patch(set(1, "served", true)))},
	{Step: "deprecate-v1alpha1", Wrong: "old-unserved", Do: commands(patch(set(0, "served", false))), WayOn: commands(patch(set(0, "served", true)))},
	{Step: "deprecate-v1alpha1", Wrong: "stray-version", Do: commands(patch(versionEntry("-", "v1beta2", true, false))), WayOn: commands(patch(`{"op":"remove","path":"/spec/versions/2"}`))},
	{Step: "deprecate-v1alpha1", Wrong: "text-alone", Do: commands(patch(set(0, "deprecationWarning", `"gone soon"`))), WayOn: commands(patch(set(0, "deprecated", true)))},
	{Step: "deprecate-v1alpha1", Wrong: "no-such-object", Do: commands("kubectl get widgets.v1alpha1.lab.example.com alhpa"), WayOn: commands("sleep 1; kubectl get widgets.v1alpha1.lab.example.com alpha")},
	{Step: "deprecate-v1alpha1", Wrong: "wrong-one", Do: commands(patch(set(1, "deprecated", true))), WayOn: commands(patch(`{"op":"remove","path":"/spec/versions/1/deprecated"}`))},
	{Step: "deprecate-v1alpha1", Wrong: "no-webhook", Do: commands(crd + `--type=merge -p '{"spec":{"conversion":{"strategy":"Webhook"}}}'`), WayOn: commands("kubectl get widgets.v1alpha1.lab.example.com", crd+`--type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`)},
	{Step: "switch-storage", Wrong: "still-recorded", Do: commands(patch(`{"op":"replace","path":"/spec/versions/0/name","value":"v1"}`)), WayOn: commands(patch(set(0, "deprecated", true)))},
	{Step: "switch-storage", Wrong: "one-storage", Do: commands(patch(set(0, "storage", false))), WayOn: commands(patch(switchOver))},
	{Step: "switch-storage", Wrong: "switched-back", Do: commands(patch(switchBack)), WayOn: commands(patch(switchOver))},
	{Step: "switch-storage", Wrong: "no-foxtrot", Do: commands("kubectl get crd"), WayOn: commands(apply("sleep 1; kubectl apply", "switch-storage", "foxtrot"))},
	{Step: "switch-storage", Wrong: "written", Do: commands("kubectl label widgets alpha a=b"), WayOn: again},
	{Step: "switch-storage", Wrong: "trimmed-early", Do: commands(patch(switchOver), declare(`"v1beta1"`)), WayOn: again},
	{Step: "rewrite", Wrong: "removed-early", Do: commands(declare(`"v1beta1"`), patch(removeOld)), WayOn: commands(patch(versionEntry(0, "v1alpha1", false, false)))},
	{Step: "rewrite", Wrong: "old-unserved", Do: commands("kubectl get crd"), WayOn: commands(patch(set(0, "served", true)))},
	{Step: "rewrite", Wrong: "trimmed-early", Do: commands("kubectl get crd"), WayOn: commands(declare(both))},
	{Step: "rewrite", Wrong: "record-lacks-storage", Do: commands(declare(`"v1alpha1"`)), WayOn: commands(declare(both))},
	{Step: "rewrite", Wrong: "record-unknown", Do: commands(declare(both + `,"v0"`)), WayOn: commands(declare(both))},
	{Step: "rewrite", Wrong: "crd-terminating", Do: commands(declare(`"v1beta1"`), patch(removeOld), "kubectl delete crd widgets.lab.example.com --wait=false"), WayOn: again},
	{Step: "rewrite", Wrong: "made-anew", Do: commands("kubectl delete widgets.v1beta1.lab.example.com delta", widget("delta")), WayOn: again},
	{Step: "rewrite", Wrong: "managers-gone", Do: commands(`kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{"metadata":{"managedFields":[{}]}}'`), WayOn: again},
	{Step: "rewrite", Wrong: "new-managers", Do: commands("kubectl label widgets.v1alpha1.lab.example.com alpha a=b"), WayOn: again},
	{Step: "rewrite", Wrong: "changed", Do: commands(`kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{"spec":{"size":9}}'`, rewriteAll), WayOn: again},
	{Step: "rewrite", Wrong: "more", Do: commands(widget("zulu")), WayOn: commands("kubectl delete widgets.v1beta1.lab.example.com zulu")},
	{Step: "rewrite", Wrong: "some-left", Do: commands("kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{}'"), WayOn: commands(rewriteAll)},
	{Step: "rewrite", Wrong: "no-default", Do: commands(labtest.Again, "for w in alpha bravo charlie delta echo; do kubectl patch widgets.v1alpha1.lab.example.com $w --type=merge -p '{}'; done"), WayOn: commands("kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{}'")},
	{Step: "attempt-removal", Wrong: "removed", Do: commands(declare(`"v1beta1"`), patch(removeOld)), WayOn: again},
	{Step: "attempt-removal", Wrong: "trimmed-early", Do: commands(declare(`"v1beta1"`)), WayOn: commands(declare(both))},
	{Step: "attempt-removal", Wrong: "switched-back", Do: commands(patch(switchBack)), WayOn: commands(patch(switchOver))},
	{Step: "attempt-removal", Wrong: "stored-again", Do: commands(patch(switchBack), "sleep 1; kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{}'", patch(switchOver)),
		WayOn: commands("sleep 1; kubectl patch widgets.v1beta1.lab.example.com alpha --type=merge -p '{}'")},
	{Step: "trim-stored-versions", Wrong: "main-resource", Do: commands(crd + `--type=merge -p '{"status":{"storedVersions":["v1beta1"]}}'`), WayOn: commands(declare(`"v1beta1"`))},
	{Step: "trim-stored-versions", Wrong: "no-dry-run", Do: commands("kubectl get crd"),
		WayOn: commands(declare(`"v1alpha1"`)+" --dry-run=server", declare(`"v0"`)+" --dry-run=server")},
	{Step: "trim-stored-versions", Wrong: "nobody-tried", Do: commands(labtest.Again, declare(`"v1beta1"`)), WayOn: commands(crd + `--type=merge -p '{"status":{"storedVersions":["v1alpha1"]}}'`)},
	{Step: "trim-stored-versions", Wrong: "record-lacks-storage", Do: commands(declare(`"v1alpha1"`)), WayOn: commands(declare(`"v1beta1"`))},
	{Step: "stop-serving", Wrong: "recorded-again", Do: commands(patch(switchBack), patch(switchOver)), WayOn: commands(declare(`"v1beta1"`))},
	{Step: "stop-serving", Wrong: "new-unserved", Do: commands(patch(set(1, "served", false))), WayOn: commands(patch(set(1, "served", true)))},
	{Step: "stop-serving", Wrong: "nobody-asked", Do: commands(patch(set(0, "served", false))),
		WayOn: commands("sleep 1; kubectl get --raw /apis/lab.example.com/v1alpha1/namespaces/" + ownNamespace + "/widgets/alpha")},
	{Step: "stop-serving", Wrong: "not-asked-new", Do: commands("kubectl get crd"), WayOn: commands("kubectl get widgets.v1beta1.lab.example.com alpha")},
	{Step: "relabel-managed-fields", Wrong: "not-the-team", Do: commands(apply("kubectl apply --server-side", "relabel-managed-fields", "team-before")),
		WayOn: commands(apply("kubectl apply --server-side --field-manager=team", "relabel-managed-fields", "team-before"))},
	{Step: "relabel-managed-fields", Wrong: "not-relabelled", Do: commands("kubectl get crd"), WayOn: commands(`kubectl patch widgets.v1beta1.lab.example.com alpha --type=json -p '[{"op":"replace","path":"/metadata/managedFields/0/apiVersion","value":"lab.example.com/v1beta1"}]'`)},
	{Step: "relabel-managed-fields", Wrong: "managers-gone", Do: commands(`kubectl patch widgets.v1beta1.lab.example.com charlie --type=merge -p '{"metadata":{"managedFields":[{}]}}'`), WayOn: again},
	{Step: "remove-v1alpha1", Wrong: "nobody-applied", Do: commands(patch(removeOld)), WayOn: commands(apply("sleep 1; kubectl apply --server-side --field-manager=team", "remove-v1alpha1", "team"))},
	{Step: "remove-v1alpha1", Wrong: "crd-gone", Do: commands("kubectl delete crd widgets.lab.example.com"), WayOn: again},
	{Step: "verify", Wrong: "written", Do: commands("kubectl label widgets alpha a=b"), WayOn: again},
	{Step: "verify", Wrong: "wrong-namespace", Do: commands("kubectl get widgets -n default"), WayOn: commands("kubectl get widgets")},
}

// fromMemory is what somebody types who knows what to do, not how: whole CRDs are applied, objects are replaced by what was read,
// and at every step something goes wrong first.
var fromMemory = map[string][]labtest.Typed{
	"create-v1alpha1": {
		{Command: "kubectl get crd", Wrong: "no-crd"},
		{Command: apply("kubectl apply", "create-v1alpha1", "crd")},
		{Command: "kubectl wait --for=condition=Established crd/widgets.lab.example.com"},
		{Command: apply("kubectl apply", "create-v1alpha1", "widgets")},
		{Command: apply("kubectl apply", "create-v1alpha1", "unknown-field")}, // kubectl is strict by itself
		{Command: apply("kubectl apply", "create-v1alpha1", "team"), Wrong: "not-the-team"},
		{Command: "kubectl delete widgets charlie"},
		{Command: apply("kubectl apply --server-side --field-manager=team", "create-v1alpha1", "team")},
		{Command: apply("kubectl apply --validate=warn", "create-v1alpha1", "unknown-field")},
	},
	"add-v1beta1": {
		{Command: patch(versionEntry("-", "v1beta1", true, true)), Wrong: "one-storage"},
		{Command: patch(versionEntry("-", "v1beta1", false, false)), Wrong: "new-unserved"},
		{Command: patch(set(1, "served", true)), Wrong: "no-tier"},
		{Command: apply("kubectl apply", "add-v1beta1", "crd")},
	},
	"deprecate-v1alpha1": {
		{Command: patch(set(0, "deprecationWarning", `"use v1beta1"`)), Wrong: "text-alone"},
		{Command: patch(set(0, "deprecated", true)), Wrong: "nobody-asked"},
		{Command: "sleep 1; kubectl get widgets.v1alpha1.lab.example.com alhpa", Wrong: "no-such-object"},
		{Command: "kubectl get widgets.v1alpha1.lab.example.com alpha", Wrong: "no-text"},
		{Command: patch(set(0, "deprecationWarning", `"use v1beta1"`)), Wrong: "text-unseen"},
		{Command: "sleep 1; kubectl get widgets.v1alpha1.lab.example.com alpha", Wrong: "not-asked-new"},
		{Command: "kubectl get widgets.v1beta1.lab.example.com alpha"},
	},
	"switch-storage": {
		{Command: patch(set(1, "storage", true)), Wrong: "one-storage"},
		{Command: apply("kubectl apply", "switch-storage", "foxtrot"), Wrong: "foxtrot-old"},
		{Command: apply("kubectl apply", "switch-storage", "crd")},
		{Command: "sleep 1; kubectl delete widgets foxtrot", Wrong: "no-foxtrot"},
		{Command: apply("kubectl apply", "switch-storage", "foxtrot")},
	},
	"rewrite": {
		{Command: declare(`"v1beta1"`), Wrong: "trimmed-early"},
		{Command: patch(removeOld), Wrong: "removed-early"},
		{Command: apply("kubectl apply", "stop-serving", "crd"), Wrong: "old-unserved"}, // the old version, unserved
		{Command: patch(set(0, "served", true)), Wrong: "trimmed-early"},
		{Command: declare(both), Wrong: "some-left"},
		// not foxtrot: kubectl replace writes the annotation of what kubectl apply has made, and owns that then
		{Command: "sleep 1; kubectl get widgets.v1beta1.lab.example.com alpha bravo charlie delta echo -o yaml | kubectl replace -f -"},
	},
	"attempt-removal": {
		{Command: patch(switchBack), Wrong: "switched-back"},
		{Command: apply("kubectl apply", "switch-storage", "crd")},
		{Command: apply("kubectl apply", "attempt-removal", "crd")},
	},
	"trim-stored-versions": {
		{Command: crd + `--type=merge -p '{"status":{"storedVersions":["v1beta1"]}}'`, Wrong: "main-resource"},
		{Command: declare(`"v1alpha1"`), Wrong: "record-lacks-storage"},
		{Command: declare(`"v1beta1"`), Wrong: "no-dry-run"},
		{Command: declare(`"v1alpha1"`) + " --dry-run=server"},
		{Command: declare(`"v0"`) + " --dry-run=server"},
	},
	"stop-serving": {
		{Command: patch(set(1, "served", false)), Wrong: "new-unserved"},
		{Command: patch(set(0, "served", false)), Wrong: "new-unserved"}, // both
		{Command: apply("kubectl apply", "stop-serving", "crd"), Wrong: "nobody-asked"},
		{Command: "sleep 1; kubectl get --raw /apis/lab.example.com/v1alpha1/namespaces/crdlab/widgets/alpha", Wrong: "not-asked-new"},
		{Command: "kubectl get widgets alpha"},
	},
	"relabel-managed-fields": {
		{Command: apply("kubectl apply --server-side", "relabel-managed-fields", "team-before"), Wrong: "not-the-team"},
		{Command: `kubectl patch widgets charlie --type=merge -p '{"metadata":{"managedFields":[{}]}}'`, Wrong: "managers-gone"},
		{Command: labtest.Again},
		{Command: apply("kubectl apply --server-side --field-manager=team", "relabel-managed-fields", "team-before"), Wrong: "not-relabelled"},
		{Command: "kubectl get widgets --show-managed-fields -o yaml | sed 's#apiVersion: lab.example.com/v1alpha1#apiVersion: lab.example.com/v1beta1#' | kubectl replace -f -", Wrong: "not-again"},
		{Command: apply("kubectl apply --server-side --field-manager=team", "relabel-managed-fields", "team-after")},
	},
	"remove-v1alpha1": {
		{Command: apply("kubectl apply", "remove-v1alpha1", "crd"), Wrong: "nobody-applied"},
		{Command: apply("sleep 1; kubectl apply --server-side --field-manager=team", "remove-v1alpha1", "team")},
	},
}

func TestTheTrackFromMemoryWithMistakes(t *testing.T) {
	t.Parallel()
	state := labtest.FromMemory(t, migrate.Track(), fromMemory)
	last := state.Steps[len(state.Steps)-1]
	if last.Verdict == nil || last.Verdict.Verdict != verdict.Complete {
		t.Errorf("the verdict is %+v", last.Verdict)
	}
}

func TestMistakesAreNamedWithTheWayOn(t *testing.T) {
	t.Parallel()
	labtest.Mistakes(t, migrate.Track, mistakes)
}
