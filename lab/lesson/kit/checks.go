package kit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// ── what several checks ask ──

func Counts(byVersion map[string]int) string {
	var out []string
	for v, n := range byVersion {
		out = append(out, fmt.Sprintf("%s:%d", v, n))
	}
	sort.Strings(out)
	return "{" + strings.Join(out, ", ") + "}"
}

// StoredAt checks how many objects are stored at which version.
func StoredAt(want func(lesson.Evidence) map[string]int) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		return lesson.Expected(Counts(want(e)), Counts(e.After.Stored.ByVersion))
	}
}

// Begun checks that the objects of which the lesson speaks are there, and as many as it begins with, all stored at a version.
func Begun(version string, names ...string) func(lesson.Evidence) lesson.Outcome {
	counted := StoredAt(func(e lesson.Evidence) map[string]int { return map[string]int{version: e.Widgets} })
	return func(e lesson.Evidence) lesson.Outcome {
		for _, name := range names {
			if e.After.Object(name) == nil {
				return lesson.Holds(false, strings.Join(names, ", "), "there is no "+name)
			}
		}
		return counted(e)
	}
}

// Record checks status.storedVersions.
func Record(want ...string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome { return lesson.Expected(want, e.After.StoredVersions()) }
}

// Pair is an object before and after the step.
type Pair struct{ Was, Is *evidence.Object }

// pairs are the objects that were there before the step. An observation holds only some of many objects: one that is not
// held now is left out, unless all are held, or the lesson speaks of it; then it is gone.
func pairs(e lesson.Evidence) (out []Pair, gone []string) {
	if e.Before == nil {
		return nil, nil
	}
	for _, was := range e.Before.Objects {
		if is := e.After.Object(was.Name); is != nil {
			out = append(out, Pair{was, is})
		}
	}
	return out, e.Gone()
}

// EveryPair checks something of every object that was there before the step; it says of one what is wrong, or nothing.
func EveryPair(want string, wrong func(Pair) string) func(lesson.Evidence) lesson.Outcome {
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
				return lesson.Holds(false, want, p.Was.Name+": "+got)
			}
		}
		return lesson.Holds(true, want, want)
	}
}

// BytesUnchanged checks that no object of before was written since.
var BytesUnchanged = EveryPair("none was written", func(p Pair) string {
	if p.Is.Stored.ModRevision != p.Was.Stored.ModRevision || p.Is.Stored.APIVersion != p.Was.Stored.APIVersion {
		return fmt.Sprintf("written, mod revision %d, was %d", p.Is.Stored.ModRevision, p.Was.Stored.ModRevision)
	}
	return ""
})

// OnlyWritten checks that no object of before was written since, but those that are named.
func OnlyWritten(names ...string) func(lesson.Evidence) lesson.Outcome {
	return EveryPair("no other object was written", func(p Pair) string {
		if p.Was.ResourceVersion != p.Is.ResourceVersion && !slices.Contains(names, p.Was.Name) {
			return "written"
		}
		return ""
	})
}

func OrNothing(label string, value any, there bool) string {
	if !there {
		return "no " + strings.TrimSuffix(label, ": ")
	}
	return label + fmt.Sprint(value)
}

// SameManagers checks that every object of before has the managers that it had, at the versions that at maps theirs to.
func SameManagers(at func(string) string) func(lesson.Evidence) lesson.Outcome {
	return EveryPair("the managers of before, and nobody else", func(p Pair) string {
		if want, got := Managers(p.Was, at), Managers(p.Is, AsItIs); !slices.Equal(want, got) {
			return OrNobody(got) + ", and not " + OrNobody(want)
		}
		return ""
	})
}

func Managers(o *evidence.Object, at func(string) string) []string {
	var out []string
	if o != nil {
		for _, m := range o.Managers {
			out = append(out, m.Manager+" ("+m.Operation+") "+at(m.APIVersion))
		}
	}
	sort.Strings(out)
	return out
}

// SameBut says whether two JSON objects are the same, apart from the fields that are named by their paths.
func SameBut(a, b json.RawMessage, without ...string) bool {
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

func ResourceVersion(v *evidence.View) string {
	if rv, ok := v.Field("metadata", "resourceVersion"); ok {
		return fmt.Sprint(rv)
	}
	return ""
}

// ObjectPath is where an object is served.
func ObjectPath(e lesson.Evidence, version, name string) string {
	return evidence.ObjectPath(e.Resource, version, e.Namespace, name)
}

// At says whether an exchange was about objects of the track at a version.
func At(e lesson.Evidence, x evidence.Exchange, version string) bool {
	return strings.HasPrefix(x.Path, evidence.CollectionPath(e.Resource, version, "")) || strings.HasPrefix(x.Path, evidence.CollectionPath(e.Resource, version, e.Namespace))
}

func Answer(x evidence.Exchange) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", x.Status, x.Reason))
}

// Choose answers a prediction by the first condition that holds; there is one for each option.
func Choose(options []string, cases ...bool) (string, error) {
	if i := slices.Index(cases, true); i >= 0 {
		return options[i], nil
	}
	return "", lesson.ErrNoAnswer
}

// ChangesCRD says whether an exchange asked to change the CRD itself, not its status.
func ChangesCRD(e lesson.Evidence, x evidence.Exchange) bool {
	return x.Method != http.MethodGet && x.To(evidence.DefinitionPath(e.Resource))
}

// Flags says in words what spec.versions says of a version.
func Flags(e lesson.Evidence, version string) string {
	v := e.After.Version(version)
	if v == nil {
		return "not in spec.versions"
	}
	out := "served"
	if !v.Served {
		out = "not served"
	}
	if v.Storage {
		return out + ", storage"
	}
	return out + ", not storage"
}

// OrNone is for what may be empty.
func OrNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// AsItIs is for SameManagers: no version has changed.
func AsItIs(version string) string { return version }

// OrNobody joins what Managers returned.
func OrNobody(managers []string) string {
	if len(managers) == 0 {
		return "nobody"
	}
	return strings.Join(managers, ", ")
}

// ManagersAt names the objects and managers whose entries are at an apiVersion.
func ManagersAt(o *evidence.Observation, apiVersion string) []string {
	var out []string
	if o == nil {
		return nil
	}
	for _, x := range o.Objects {
		for _, m := range x.Managers {
			if m.APIVersion == apiVersion {
				out = append(out, x.Name+": "+m.Manager)
			}
		}
	}
	return out
}

// Owns says whether a manager owns a field of spec.
func Owns(o *evidence.Object, manager, field string) bool {
	if o == nil {
		return false
	}
	for _, m := range o.Managers {
		var fields map[string]map[string]any
		if json.Unmarshal(m.Fields, &fields) != nil {
			continue
		}
		if _, there := fields["f:spec"]["f:"+field]; there && m.Manager == manager {
			return true
		}
	}
	return false
}

// Owners says who owns a field of spec.
func Owners(o *evidence.Object, field string) string {
	if o != nil {
		for _, m := range o.Managers {
			if Owns(o, m.Manager, field) {
				return m.Manager + " owns it"
			}
		}
	}
	return "nobody owns it"
}

// Holds makes an Outcome of a condition, of what was wanted, and of what was seen instead where it does not hold.
func Holds(ok bool, want, otherwise string) lesson.Outcome {
	if ok {
		return lesson.Holds(true, want, want)
	}
	return lesson.Holds(false, want, otherwise)
}
