package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// ── what several checks ask ──

func counts(byVersion map[string]int) string {
	var out []string
	for v, n := range byVersion {
		out = append(out, fmt.Sprintf("%s:%d", v, n))
	}
	sort.Strings(out)
	return "{" + strings.Join(out, ", ") + "}"
}

// storedAt checks how many objects are stored at which version.
func storedAt(want func(lesson.Evidence) map[string]int) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		return lesson.Expected(counts(want(e)), counts(e.After.Stored.ByVersion))
	}
}

// record checks status.storedVersions.
func record(want ...string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome { return lesson.Expected(want, e.After.StoredVersions()) }
}

// pair is an object before and after the step.
type pair struct{ was, is *evidence.Object }

// pairs are the objects that were there before the step. An observation holds only some of many objects: one that is not
// held now is left out, unless all are held, or the lesson speaks of it; then it is gone.
func pairs(e lesson.Evidence) (out []pair, gone []string) {
	if e.Before == nil {
		return nil, nil
	}
	for _, was := range e.Before.Objects {
		is := e.After.Object(was.Name)
		switch {
		case is != nil:
			out = append(out, pair{was, is})
		case e.After.ObjectsOmitted == 0 || slices.Contains(named, was.Name):
			gone = append(gone, was.Name)
		}
	}
	return out, gone
}

// everyPair checks something of every object that was there before the step; it says of one what is wrong, or nothing.
func everyPair(want string, wrong func(pair) string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		objects, gone := pairs(e)
		if len(objects) == 0 {
			return lesson.Holds(false, want, "no objects")
		}
		if len(gone) > 0 {
			return lesson.Holds(false, want, "gone: "+strings.Join(gone, " "))
		}
		for _, p := range objects {
			if got := wrong(p); got != "" {
				return lesson.Holds(false, want, p.was.Name+": "+got)
			}
		}
		return lesson.Holds(true, want, want)
	}
}

// bytesUnchanged checks that no object of before was written since.
var bytesUnchanged = everyPair("none was written", func(p pair) string {
	if p.is.Stored.ModRevision != p.was.Stored.ModRevision || p.is.Stored.APIVersion != p.was.Stored.APIVersion {
		return fmt.Sprintf("written, mod revision %d, was %d", p.is.Stored.ModRevision, p.was.Stored.ModRevision)
	}
	return ""
})

// noDefault checks that an object shows no tier at the new version, although that version's schema has a default for it.
func noDefault(e lesson.Evidence) lesson.Outcome {
	v := e.After.Version(newVersion)
	if v == nil || !slices.Contains(v.Fields, "tier") {
		return lesson.Holds(false, "spec.tier in the schema of "+newVersion, "no such field")
	}
	view := e.After.Object(alpha).View(newVersion)
	if view == nil || view.Status != 200 {
		return lesson.Holds(false, "a view at "+newVersion, "none")
	}
	value, there := view.Field("spec", "tier")
	return lesson.Holds(!there, "no spec.tier", orNothing("spec.tier: ", value, there))
}

func orNothing(label string, value any, there bool) string {
	if !there {
		return "no " + strings.TrimSuffix(label, ": ")
	}
	return label + fmt.Sprint(value)
}

// sameManagers checks that every object of before has the managers that it had, at the versions that at maps theirs to.
func sameManagers(at func(string) string) func(lesson.Evidence) lesson.Outcome {
	return everyPair("the managers of before, and nobody else", func(p pair) string {
		if want, got := managers(p.was, at), managers(p.is, asItIs); !slices.Equal(want, got) {
			return orNobody(got) + ", and not " + orNobody(want)
		}
		return ""
	})
}

func managers(o *evidence.Object, at func(string) string) []string {
	var out []string
	if o != nil {
		for _, m := range o.Managers {
			out = append(out, m.Manager+" ("+m.Operation+") "+at(m.APIVersion))
		}
	}
	sort.Strings(out)
	return out
}

// sameBut says whether two JSON objects are the same, apart from the fields that are named by their paths.
func sameBut(a, b json.RawMessage, without ...string) bool {
	x, y := decode(a), decode(b)
	for _, path := range without {
		drop(x, strings.Split(path, "."))
		drop(y, strings.Split(path, "."))
	}
	return reflect.DeepEqual(x, y)
}

func decode(raw json.RawMessage) map[string]any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out map[string]any
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}

func drop(m map[string]any, path []string) {
	for _, p := range path[:len(path)-1] {
		next, ok := m[p].(map[string]any)
		if !ok {
			return
		}
		m = next
	}
	delete(m, path[len(path)-1])
}

func resourceVersion(v *evidence.View) string {
	if rv, ok := v.Field("metadata", "resourceVersion"); ok {
		return fmt.Sprint(rv)
	}
	return ""
}

// objectPath is where an object is served.
func objectPath(e lesson.Evidence, version, name string) string {
	return evidence.ObjectPath(e.Resource, version, e.Namespace, name)
}

// at says whether an exchange was about objects of the track at a version.
func at(e lesson.Evidence, x evidence.Exchange, version string) bool {
	return strings.HasPrefix(x.Path, evidence.CollectionPath(e.Resource, version, "")) || strings.HasPrefix(x.Path, evidence.CollectionPath(e.Resource, version, e.Namespace))
}

// teamApplies finds the team's server-side applies at the new version.
func teamApplies(e lesson.Evidence) []evidence.Exchange {
	var out []evidence.Exchange
	for _, x := range e.Exchanges {
		if x.Method == "PATCH" && x.ContentType == evidence.ApplyPatch && x.To(objectPath(e, newVersion, charlie)) &&
			strings.Contains(x.Path, "fieldManager="+team) && !x.DryRun() {
			out = append(out, x)
		}
	}
	return out
}

func answer(x evidence.Exchange) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", x.Status, x.Reason))
}

// choose answers a prediction by the first condition that holds; there is one for each option.
func choose(options []string, cases ...bool) (string, error) {
	if i := slices.Index(cases, true); i >= 0 {
		return options[i], nil
	}
	return "", lesson.ErrNoAnswer
}
