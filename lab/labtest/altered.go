package labtest

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
	"github.com/crdlab/crdlab/lab/verdict"
)

// An Alteration makes evidence say what the server did not say.
type Alteration func(e *lesson.Evidence)

// Question is an alteration that must change the answer to a question, and the option that is right then; empty where no
// option is.
type Question struct {
	Alter Alteration
	Right string
}

// Altered runs a track, and feeds each check, by STEP/CHECK, and each question, by its step, what the server did not say: a
// check must fail then, and an answer must be another. A check of several things has an alteration for each: a word or two
// after a space tell them apart, as in STEP/CHECK of alpha.
func Altered(t *testing.T, track *lesson.Track, checks map[string]Alteration, questions map[string]Question) {
	t.Helper()
	s := Start(t, track)
	altered := 0
	err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		truth := Seen(s.State(), step, step.After)
		for _, c := range step.Lesson.Checks {
			id := step.ID + "/" + c.ID
			if o := c.Evaluate(truth); o.Result != lesson.Passed {
				t.Errorf("%s does not hold on true evidence: want %q, got %q", id, o.Want, o.Got)
			}
			there := false
			for key, alter := range checks {
				if of, _, _ := strings.Cut(key, " "); of != id {
					continue
				}
				there = true
				altered++
				if o := c.Evaluate(altering(truth, alter)); o.Result != lesson.Failed {
					t.Errorf("%s does not notice altered evidence: %s, want %q, got %q", key, o.Result, o.Want, o.Got)
				}
			}
			if !there {
				t.Errorf("%s: no alteration shows that it could fail", id)
			}
		}
		p, there := questions[step.ID]
		if !there {
			t.Errorf("%s: no alteration changes its answer", step.ID)
			return
		}
		if !slices.Contains(step.Lesson.Predict.Options, step.Answer) {
			t.Errorf("%s: the answer %q is none of the options", step.ID, step.Answer)
		}
		got, err := step.Lesson.Predict.Answer(altering(truth, p.Alter))
		if got != p.Right || got == step.Answer || (p.Right == "") != errors.Is(err, lesson.ErrNoAnswer) {
			t.Errorf("%s: on altered evidence the answer is %q (%v), and %q was to be", step.ID, got, err, p.Right)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if altered != len(checks) {
		t.Errorf("%d alterations were tried, and there are %d: some are for checks that do not exist, or were not reached", altered, len(checks))
	}
}

// Seen is the evidence of a step, as of an observation.
func Seen(state *lab.State, step *lab.Step, after *evidence.Observation) lesson.Evidence {
	return lesson.Evidence{Before: step.Before, After: after, Exchanges: step.Exchanges, Conversions: step.Conversions, Calls: step.Calls(), Rewrite: step.Rewrite, Verdict: step.Verdict,
		Resource: state.Resource, Namespace: state.Namespace, Widgets: state.Widgets, Named: state.Track.Named,
		During: step.Observations, RewriteWith: state.RewriteWith, ServerVersion: state.Cluster.Version, Fault: state.Fault, Failure: step.Err}
}

// altering alters a copy.
func altering(e lesson.Evidence, alter Alteration) lesson.Evidence {
	e.After = clone(e.After)
	e.Exchanges, e.Conversions, e.Calls = slices.Clone(e.Exchanges), slices.Clone(e.Conversions), maps.Clone(e.Calls)
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

// Count adds to the number of objects that are stored at a version.
func Count(version string, by int) Alteration {
	return func(e *lesson.Evidence) {
		e.After.Stored.ByVersion[version] += by
		e.After.Stored.Total += by
	}
}

// Record replaces storedVersions.
func Record(versions ...string) Alteration {
	return func(e *lesson.Evidence) { e.After.CRD.StoredVersions = versions }
}

// Version changes an entry of spec.versions.
func Version(name string, change func(*evidence.Version)) Alteration {
	return func(e *lesson.Evidence) { change(e.After.Version(name)) }
}

// NoVersion takes a version out of spec.versions.
func NoVersion(name string) Alteration {
	return func(e *lesson.Evidence) {
		e.After.CRD.Versions = slices.DeleteFunc(e.After.CRD.Versions, func(v evidence.Version) bool { return v.Name == name })
	}
}

// Object changes an object.
func Object(name string, change func(*evidence.Object)) Alteration {
	return func(e *lesson.Evidence) { change(e.After.Object(name)) }
}

// ManagersOf changes each of an object's managers.
func ManagersOf(name string, change func(*evidence.Manager)) Alteration {
	return Object(name, func(o *evidence.Object) {
		for i := range o.Managers {
			change(&o.Managers[i])
		}
	})
}

// Written makes an object look as if somebody had written it.
func Written(name string) Alteration {
	return Object(name, func(o *evidence.Object) {
		o.Stored.ModRevision++
		o.ResourceVersion = fmt.Sprint(o.Stored.ModRevision)
	})
}

// StoredAs puts another version into an object's bytes.
func StoredAs(name, version string) Alteration {
	return Object(name, func(o *evidence.Object) { o.Stored.APIVersion = "lab.example.com/" + version })
}

// ViewOf sets a field of a view; nil takes it away.
func ViewOf(name, version, part, field string, value any) Alteration {
	return Object(name, func(o *evidence.Object) {
		v := *o.Views[version]
		v.Object = set(v.Object, part, field, value)
		o.Views[version] = &v
	})
}

// BytesOf sets a field of the stored value; nil takes it away.
func BytesOf(name, part, field string, value any) Alteration {
	return Object(name, func(o *evidence.Object) { o.Stored.Value = set(o.Stored.Value, part, field, value) })
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

// Exchanges changes every exchange that has a text in its path.
func Exchanges(path string, change func(*evidence.Exchange)) Alteration {
	return func(e *lesson.Evidence) {
		for i := range e.Exchanges {
			if strings.Contains(e.Exchanges[i].Path, path) {
				change(&e.Exchanges[i])
			}
		}
	}
}

// NoExchanges takes away every exchange of a method that has a text in its path.
func NoExchanges(method, path string) Alteration {
	return func(e *lesson.Evidence) {
		e.Exchanges = slices.DeleteFunc(e.Exchanges, func(x evidence.Exchange) bool { return x.Method == method && strings.Contains(x.Path, path) })
	}
}

// Answered changes every exchange of a method that has a text in its path.
func Answered(method, path string, status int) Alteration {
	return Exchanges(path, func(x *evidence.Exchange) {
		if x.Method == method {
			x.Status = status
		}
	})
}

// Conversions changes every review that asked for a version.
func Conversions(to string, change func(*evidence.Conversion)) Alteration {
	return func(e *lesson.Evidence) {
		for i := range e.Conversions {
			if e.Conversions[i].DesiredAPIVersion == e.Resource.Group+"/"+to {
				change(&e.Conversions[i])
			}
		}
	}
}

// NoConversions takes all reviews away.
func NoConversions(e *lesson.Evidence) { e.Conversions = nil }

// Calls sets how many reviews an action caused.
func Calls(action string, n int) Alteration {
	return func(e *lesson.Evidence) { e.Calls[action] = n }
}

// Strategy replaces the CRD's strategy of conversion.
func Strategy(s string) Alteration {
	return func(e *lesson.Evidence) { e.After.CRD.Strategy = s }
}

// WithoutWarning takes away every warning that has a text in it.
func WithoutWarning(text string) Alteration {
	return Exchanges("", func(x *evidence.Exchange) {
		x.Warnings = slices.DeleteFunc(slices.Clone(x.Warnings), func(w string) bool { return strings.Contains(w, text) })
	})
}

// Verdicts changes the verdict.
func Verdicts(change func(*verdict.Verdict)) Alteration {
	return func(e *lesson.Evidence) { change(e.Verdict) }
}
