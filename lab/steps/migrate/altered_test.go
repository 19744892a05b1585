package migrate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/verdict"
)

// An alteration makes evidence say what the server did not say.
type alteration func(e *lesson.Evidence)

// checks has for every check an alteration of true evidence that it must notice.
var checks = map[string]alteration{
	"create-v1alpha1/stored": count("v1alpha1", -1),
	"create-v1alpha1/record": record("v1alpha1", "v1beta1"),
	"create-v1alpha1/strict": exchanges("fieldValidation=Strict", func(x *evidence.Exchange) { x.Status = 201 }),
	"create-v1alpha1/pruned": bytesOf("bravo", "spec", "weight", 12),
	"create-v1alpha1/team":   managersOf("charlie", func(m *evidence.Manager) { m.Manager = "somebody" }),

	"add-v1beta1/served":         version("v1beta1", func(v *evidence.Version) { v.Served = false }),
	"add-v1beta1/one-object":     viewOf("alpha", "v1beta1", "metadata", "resourceVersion", "1"),
	"add-v1beta1/only-the-label": viewOf("echo", "v1beta1", "spec", "color", "pink"),
	"add-v1beta1/no-default":     viewOf("alpha", "v1beta1", "spec", "tier", "standard"),
	"add-v1beta1/bytes":          written("delta"),
	"add-v1beta1/record":         record("v1alpha1", "v1beta1"),

	"deprecate-v1alpha1/deprecated":      version("v1alpha1", func(v *evidence.Version) { v.Deprecated = false }),
	"deprecate-v1alpha1/default-warning": withoutWarning("is deprecated"),
	"deprecate-v1alpha1/own-warning":     withoutWarning("goes in release 2.0"),
	"deprecate-v1alpha1/none-at-v1beta1": exchanges("/v1beta1/", func(x *evidence.Exchange) { x.Warnings = []string{"no"} }),
	"deprecate-v1alpha1/not-blocked":     exchanges("/v1alpha1/", func(x *evidence.Exchange) { x.Status = 410 }),

	"switch-storage/record":     record("v1alpha1"),
	"switch-storage/new-bytes":  storedAs("foxtrot", "v1alpha1"),
	"switch-storage/old-bytes":  written("alpha"),
	"switch-storage/counts":     count("v1beta1", 1),
	"switch-storage/no-default": viewOf("alpha", "v1beta1", "spec", "tier", "standard"),

	"rewrite/stored":       count("v1alpha1", 1),
	"rewrite/default":      bytesOf("alpha", "spec", "tier", nil),
	"rewrite/same-objects": object("alpha", func(o *evidence.Object) { o.UID = "another" }),
	"rewrite/managers": object("alpha", func(o *evidence.Object) {
		o.Managers = append(o.Managers, evidence.Manager{Manager: "rewriter", Operation: "Update", APIVersion: "lab.example.com/v1beta1"})
	}),
	"rewrite/record": record("v1beta1"),

	"attempt-removal/refused":        exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Status, x.Causes = 200, nil }),
	"attempt-removal/nothing-stored": count("v1alpha1", 1),
	"attempt-removal/still-there":    noVersion("v1alpha1"),

	"trim-stored-versions/ignored": exchanges("customresourcedefinitions", func(x *evidence.Exchange) {
		x.Response = `{"status":{"storedVersions":["v1beta1"]}}`
	}),
	"trim-stored-versions/untrue-accepted": exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }),
	"trim-stored-versions/record":          record("v1alpha1", "v1beta1"),
	"trim-stored-versions/true":            count("v1alpha1", 1),

	"stop-serving/flag":      version("v1alpha1", func(v *evidence.Version) { v.Served = true }),
	"stop-serving/asked-old": exchanges("/v1alpha1/", func(x *evidence.Exchange) { x.Status = 200 }),
	"stop-serving/asked-new": exchanges("/v1beta1/", func(x *evidence.Exchange) { x.Status = 404 }),
	"stop-serving/views":     object("delta", func(o *evidence.Object) { o.Views["v1alpha1"] = &evidence.View{Status: 200} }),
	"stop-serving/bytes":     written("echo"),

	"relabel-managed-fields/refused-before": exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 200 }),
	"relabel-managed-fields/labels":         managersOf("bravo", func(m *evidence.Manager) { m.APIVersion = "lab.example.com/v1alpha1" }),
	"relabel-managed-fields/applied-after":  exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 500 }),
	"relabel-managed-fields/owner":          managersOf("charlie", func(m *evidence.Manager) { m.Fields = json.RawMessage(`{"f:spec":{"f:size":{}}}`) }),
	"relabel-managed-fields/managers":       object("delta", func(o *evidence.Object) { o.Managers = nil }),

	"remove-v1alpha1/removed":   version("v1beta1", func(v *evidence.Version) { v.Name = "v1" }),
	"remove-v1alpha1/applied":   exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 500 }),
	"remove-v1alpha1/readable":  object("alpha", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 500} }),
	"remove-v1alpha1/all-there": count("v1beta1", -1),

	"verify/complete":  verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Incomplete }),
	"verify/findings":  verdicts(func(v *verdict.Verdict) { v.Findings[0].Result = verdict.Warn }),
	"verify/unchanged": written("alpha"),
}

// predictions has for every question an alteration that must change the answer, and the option that is right then;
// empty where no option is.
var predictions = map[string]struct {
	alter alteration
	right string
}{
	"create-v1alpha1":        {viewOf("bravo", "v1alpha1", "spec", "weight", 12), "kept"},
	"add-v1beta1":            {viewOf("alpha", "v1beta1", "spec", "tier", "standard"), "default"},
	"deprecate-v1alpha1":     {exchanges("/v1alpha1/", func(x *evidence.Exchange) { x.Status = 410 }), "blocked"},
	"switch-storage":         {viewOf("alpha", "v1beta1", "spec", "tier", "standard"), "standard"},
	"rewrite":                {record("v1beta1"), "shrinks"},
	"attempt-removal":        {exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Status = 200 }), "accepted"},
	"trim-stored-versions":   {exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }), "bytes"},
	"stop-serving":           {object("alpha", func(o *evidence.Object) { o.Views["v1alpha1"] = &evidence.View{Status: 410} }), "gone"},
	"relabel-managed-fields": {exchanges("fieldManager=team", func(x *evidence.Exchange) { x.Status = 409 }), "conflict"},
	"remove-v1alpha1":        {written("alpha"), "rewritten"},
	"verify":                 {verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Unknown }), "unknown"},
}

// TestAlteredEvidenceChangesEveryCheckAndAnswer feeds each check and each prediction what the server did not say.
func TestAlteredEvidenceChangesEveryCheckAndAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, migrate.Track())
	altered := 0
	err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		truth := seen(s.State(), step, step.After)
		for _, c := range step.Lesson.Checks {
			id := step.ID + "/" + c.ID
			if o := c.Evaluate(truth); o.Result != lesson.Passed {
				t.Errorf("%s does not hold on true evidence: want %q, got %q", id, o.Want, o.Got)
			}
			alter, there := checks[id]
			if !there {
				t.Errorf("%s: no alteration shows that it could fail", id)
				continue
			}
			altered++
			if o := c.Evaluate(after(truth, alter)); o.Result != lesson.Failed {
				t.Errorf("%s does not notice altered evidence: %s, want %q, got %q", id, o.Result, o.Want, o.Got)
			}
		}
		p, there := predictions[step.ID]
		if !there {
			t.Errorf("%s: no alteration changes its answer", step.ID)
			return
		}
		if !slices.Contains(step.Lesson.Predict.Options, step.Answer) {
			t.Errorf("%s: the answer %q is none of the options", step.ID, step.Answer)
		}
		got, err := step.Lesson.Predict.Answer(after(truth, p.alter))
		if got != p.right || got == step.Answer || (p.right == "") != errors.Is(err, lesson.ErrNoAnswer) {
			t.Errorf("%s: on altered evidence the answer is %q (%v), and %q was to be", step.ID, got, err, p.right)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if altered != len(checks) {
		t.Errorf("%d checks were tried, and there are alterations for %d", altered, len(checks))
	}
}

// seen is the evidence of a step, as of an observation.
func seen(state *lab.State, step *lab.Step, after *evidence.Observation) lesson.Evidence {
	return lesson.Evidence{Before: step.Before, After: after, Exchanges: step.Exchanges, Rewrite: step.Rewrite, Verdict: step.Verdict,
		Resource: state.Resource, Namespace: state.Namespace, Widgets: state.Widgets}
}

// ── alterations ──

// after alters a copy.
func after(e lesson.Evidence, alter alteration) lesson.Evidence {
	e.After = clone(e.After)
	e.Exchanges = slices.Clone(e.Exchanges)
	if e.Verdict != nil {
		v := *e.Verdict
		v.Findings = slices.Clone(v.Findings)
		e.Verdict = &v
	}
	alter(&e)
	return e
}

func clone(o *evidence.Observation) *evidence.Observation {
	n := *o
	crd := *o.CRD
	crd.Versions, crd.StoredVersions = slices.Clone(crd.Versions), slices.Clone(crd.StoredVersions)
	n.CRD = &crd
	n.Stored.ByVersion = maps.Clone(o.Stored.ByVersion)
	n.Objects = nil
	for _, x := range o.Objects {
		y := *x
		y.Managers, y.Views = slices.Clone(x.Managers), maps.Clone(x.Views)
		value := *x.Stored
		y.Stored = &value
		n.Objects = append(n.Objects, &y)
	}
	return &n
}

func count(version string, by int) alteration {
	return func(e *lesson.Evidence) {
		e.After.Stored.ByVersion[version] += by
		e.After.Stored.Total += by
	}
}

func record(versions ...string) alteration {
	return func(e *lesson.Evidence) { e.After.CRD.StoredVersions = versions }
}

func version(name string, change func(*evidence.Version)) alteration {
	return func(e *lesson.Evidence) { change(e.After.Version(name)) }
}

func noVersion(name string) alteration {
	return func(e *lesson.Evidence) {
		e.After.CRD.Versions = slices.DeleteFunc(e.After.CRD.Versions, func(v evidence.Version) bool { return v.Name == name })
	}
}

func object(name string, change func(*evidence.Object)) alteration {
	return func(e *lesson.Evidence) { change(e.After.Object(name)) }
}

func managersOf(name string, change func(*evidence.Manager)) alteration {
	return object(name, func(o *evidence.Object) {
		for i := range o.Managers {
			change(&o.Managers[i])
		}
	})
}

func written(name string) alteration {
	return object(name, func(o *evidence.Object) {
		o.Stored.ModRevision++
		o.ResourceVersion = fmt.Sprint(o.Stored.ModRevision)
	})
}

func storedAs(name, version string) alteration {
	return object(name, func(o *evidence.Object) { o.Stored.APIVersion = "lab.example.com/" + version })
}

func viewOf(name, version, part, field string, value any) alteration {
	return object(name, func(o *evidence.Object) {
		v := *o.Views[version]
		v.Object = set(v.Object, part, field, value)
		o.Views[version] = &v
	})
}

func bytesOf(name, part, field string, value any) alteration {
	return object(name, func(o *evidence.Object) { o.Stored.Value = set(o.Stored.Value, part, field, value) })
}

// set sets a field; nil takes it away.
func set(raw json.RawMessage, part, field string, value any) json.RawMessage {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		panic(err)
	}
	if value == nil {
		delete(m[part].(map[string]any), field)
	} else {
		m[part].(map[string]any)[field] = value
	}
	out, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return out
}

func exchanges(path string, change func(*evidence.Exchange)) alteration {
	return func(e *lesson.Evidence) {
		for i := range e.Exchanges {
			if strings.Contains(e.Exchanges[i].Path, path) {
				change(&e.Exchanges[i])
			}
		}
	}
}

// withoutWarning takes away every warning that has a text in it.
func withoutWarning(text string) alteration {
	return exchanges("", func(x *evidence.Exchange) {
		x.Warnings = slices.DeleteFunc(slices.Clone(x.Warnings), func(w string) bool { return strings.Contains(w, text) })
	})
}

func verdicts(change func(*verdict.Verdict)) alteration {
	return func(e *lesson.Evidence) { change(e.Verdict) }
}
