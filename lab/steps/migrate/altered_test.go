package migrate_test

import (
	"encoding/json"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/verdict"
)

// checks has for every check an alteration of true evidence that it must notice.
var checks = map[string]labtest.Alteration{
	"create-v1alpha1/stored": labtest.Count("v1alpha1", -1),
	"create-v1alpha1/record": labtest.Record("v1alpha1", "v1beta1"),
	"create-v1alpha1/strict": labtest.Exchanges("fieldValidation=Strict", func(x *evidence.Exchange) { x.Status = 201 }),
	"create-v1alpha1/pruned": labtest.BytesOf("bravo", "spec", "weight", 12),
	"create-v1alpha1/team":   labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Manager = "somebody" }),

	"add-v1beta1/served":         labtest.Version("v1beta1", func(v *evidence.Version) { v.Served = false }),
	"add-v1beta1/one-object":     labtest.ViewOf("alpha", "v1beta1", "metadata", "resourceVersion", "1"),
	"add-v1beta1/only-the-label": labtest.ViewOf("echo", "v1beta1", "spec", "color", "pink"),
	"add-v1beta1/no-default":     labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"),
	"add-v1beta1/bytes":          labtest.Written("delta"),
	"add-v1beta1/record":         labtest.Record("v1alpha1", "v1beta1"),

	"deprecate-v1alpha1/deprecated":      labtest.Version("v1alpha1", func(v *evidence.Version) { v.Deprecated = false }),
	"deprecate-v1alpha1/default-warning": labtest.WithoutWarning("is deprecated"),
	"deprecate-v1alpha1/own-warning":     labtest.WithoutWarning("goes in release 2.0"),
	"deprecate-v1alpha1/none-at-v1beta1": labtest.Exchanges("/v1beta1/", func(x *evidence.Exchange) { x.Warnings = []string{"no"} }),
	"deprecate-v1alpha1/not-blocked":     labtest.Exchanges("/v1alpha1/", func(x *evidence.Exchange) { x.Status = 410 }),

	"switch-storage/record":     labtest.Record("v1alpha1"),
	"switch-storage/new-bytes":  labtest.StoredAs("foxtrot", "v1alpha1"),
	"switch-storage/old-bytes":  labtest.Written("alpha"),
	"switch-storage/counts":     labtest.Count("v1beta1", 1),
	"switch-storage/no-default": labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"),

	"rewrite/stored":       labtest.Count("v1alpha1", 1),
	"rewrite/default":      labtest.BytesOf("alpha", "spec", "tier", nil),
	"rewrite/same-objects": labtest.Object("alpha", func(o *evidence.Object) { o.UID = "another" }),
	"rewrite/managers": labtest.Object("alpha", func(o *evidence.Object) {
		o.Managers = append(o.Managers, evidence.Manager{Manager: "rewriter", Operation: "Update", APIVersion: "lab.example.com/v1beta1"})
	}),
	"rewrite/record": labtest.Record("v1beta1"),

	"attempt-removal/answer":         labtest.Exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Status, x.Causes = 200, nil }),
	"attempt-removal/nothing-stored": labtest.Count("v1alpha1", 1),
	"attempt-removal/still-there":    labtest.NoVersion("v1alpha1"),

	"trim-stored-versions/ignored": labtest.Exchanges("customresourcedefinitions", func(x *evidence.Exchange) {
		x.Response = `{"status":{"storedVersions":["v1beta1"]}}`
	}),
	"trim-stored-versions/untrue-accepted": labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }),
	"trim-stored-versions/record":          labtest.Record("v1alpha1", "v1beta1"),
	"trim-stored-versions/true":            labtest.Count("v1alpha1", 1),

	"stop-serving/flag":      labtest.Version("v1alpha1", func(v *evidence.Version) { v.Served = true }),
	"stop-serving/asked-old": labtest.Exchanges("/v1alpha1/", func(x *evidence.Exchange) { x.Status = 200 }),
	"stop-serving/asked-new": labtest.Exchanges("/v1beta1/", func(x *evidence.Exchange) { x.Status = 404 }),
	"stop-serving/views":     labtest.Object("delta", func(o *evidence.Object) { o.Views["v1alpha1"] = &evidence.View{Status: 200} }),
	"stop-serving/bytes":     labtest.Written("echo"),

	"relabel-managed-fields/refused-before": labtest.Exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 200 }),
	"relabel-managed-fields/labels":         labtest.ManagersOf("bravo", func(m *evidence.Manager) { m.APIVersion = "lab.example.com/v1alpha1" }),
	"relabel-managed-fields/applied-after":  labtest.Exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 500 }),
	"relabel-managed-fields/owner":          labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Fields = json.RawMessage(`{"f:spec":{"f:size":{}}}`) }),
	"relabel-managed-fields/managers":       labtest.Object("delta", func(o *evidence.Object) { o.Managers = nil }),

	"remove-v1alpha1/removed":   labtest.Version("v1beta1", func(v *evidence.Version) { v.Name = "v1" }),
	"remove-v1alpha1/applied":   labtest.Exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 500 }),
	"remove-v1alpha1/readable":  labtest.Object("alpha", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 500} }),
	"remove-v1alpha1/all-there": labtest.Count("v1beta1", -1),

	"verify/complete":  labtest.Verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Incomplete }),
	"verify/findings":  labtest.Verdicts(func(v *verdict.Verdict) { v.Findings[0].Result = verdict.Warn }),
	"verify/unchanged": labtest.Written("alpha"),
}

// questions has for every question an alteration that must change the answer, and the option that is right then;
// empty where no option is.
var questions = map[string]labtest.Question{
	"create-v1alpha1":        {Alter: labtest.ViewOf("bravo", "v1alpha1", "spec", "weight", 12), Right: "kept"},
	"add-v1beta1":            {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"), Right: "default"},
	"deprecate-v1alpha1":     {Alter: labtest.Exchanges("/v1alpha1/", func(x *evidence.Exchange) { x.Status = 410 }), Right: "blocked"},
	"switch-storage":         {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"), Right: "standard"},
	"rewrite":                {Alter: labtest.Record("v1beta1"), Right: "shrinks"},
	"attempt-removal":        {Alter: labtest.Exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Status = 200 }), Right: "accepted"},
	"trim-stored-versions":   {Alter: labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }), Right: "bytes"},
	"stop-serving":           {Alter: labtest.Object("alpha", func(o *evidence.Object) { o.Views["v1alpha1"] = &evidence.View{Status: 410} }), Right: "gone"},
	"relabel-managed-fields": {Alter: labtest.Exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 409 }), Right: "conflict"},
	"remove-v1alpha1":        {Alter: labtest.Written("alpha"), Right: "rewritten"},
	"verify":                 {Alter: labtest.Verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Unknown }), Right: "unknown"},
}

func TestAlteredEvidenceChangesEveryCheckAndAnswer(t *testing.T) {
	t.Parallel()
	labtest.Altered(t, migrate.Track(), checks, questions)
}
