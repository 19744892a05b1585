package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// absent stands where a view, or the stored value, has no such field.
const absent = "∅"

// stored is the column of the stored value, beside those of the views.
const stored = "bytes"

// listed is one entry of storedVersions, and what the step did to it.
type listed struct {
	version string
	sign    string // + or -; empty where it stood before as well
}

// storedVersions compares the CRD's record before and after a step.
func storedVersions(before, after *evidence.Observation) []listed {
	var out []listed
	for _, v := range before.StoredVersions() {
		if !after.Lists(v) {
			out = append(out, listed{v, "-"})
		}
	}
	for _, v := range after.StoredVersions() {
		if before.Lists(v) {
			out = append(out, listed{v, ""})
		} else {
			out = append(out, listed{v, "+"})
		}
	}
	return out
}

// flags says what a version is for: served, storage, deprecated.
func flags(v evidence.Version) string {
	var out []string
	if v.Served {
		out = append(out, "served")
	} else {
		out = append(out, "not served")
	}
	if v.Storage {
		out = append(out, "storage")
	}
	if v.Deprecated {
		out = append(out, "deprecated")
	}
	return strings.Join(out, ", ")
}

// count is how many objects are stored at a version.
type count struct {
	version string
	objects int
}

// counts are the objects by stored version, in the order of the track's versions.
func counts(o *evidence.Observation, order []string) []count {
	var out []count
	for _, v := range inOrder(order, maps.Keys(o.Stored.ByVersion)) {
		out = append(out, count{v, o.Stored.ByVersion[v]})
	}
	return out
}

// shown are the objects that a step is told by: the one that it is about, and one of each other stored version, the
// track's subject before the newest. The one that was written first comes first.
func shown(s *lab.State, step *lab.Step) []*evidence.Object {
	if step.After == nil {
		return nil
	}
	about := s.Track.Subject
	if step.Lesson != nil && step.Lesson.Show != "" {
		about = step.Lesson.Show
	}
	var out []*evidence.Object
	if o := step.After.Object(about); o != nil {
		out = append(out, o)
	}
	one := map[string]*evidence.Object{}
	for _, o := range step.After.Objects {
		if o.Stored == nil {
			continue
		}
		n := one[o.StoredVersion()]
		if n == nil || o.Name == s.Track.Subject || n.Name != s.Track.Subject && n.Stored.ModRevision < o.Stored.ModRevision {
			one[o.StoredVersion()] = o
		}
	}
	for _, v := range inOrder(s.Track.Versions, maps.Keys(one)) {
		if !slices.ContainsFunc(out, func(o *evidence.Object) bool { return o.StoredVersion() == v }) {
			out = append(out, one[v])
		}
	}
	slices.SortStableFunc(out, func(a, b *evidence.Object) int {
		if a.Stored == nil || b.Stored == nil {
			return 0
		}
		return int(a.Stored.ModRevision - b.Stored.ModRevision)
	})
	return out
}

// difference is a field that not every view of an object, nor its stored value, has alike.
type difference struct {
	path   string
	values []string // in the order of the columns; absent where there is none
}

// columns are the versions at which an object could be read, and the stored value where it is known.
func columns(o *evidence.Object, order []string) []string {
	var readable []string
	for _, v := range inOrder(order, maps.Keys(o.Views)) {
		if o.Views[v].Status == 200 {
			readable = append(readable, v)
		}
	}
	if o.Stored != nil {
		readable = append(readable, stored)
	}
	return readable
}

// differences compares an object's views and its stored value. What differs by its nature is left out: the apiVersion
// that every view echoes, the resourceVersion that is no part of the bytes, and managedFields.
func differences(o *evidence.Object, columns []string) []difference {
	fields := make([]map[string]string, len(columns))
	all := map[string]bool{}
	for i, c := range columns {
		fields[i] = leaves(document(o, c))
		for p := range fields[i] {
			all[p] = true
		}
	}
	var out []difference
	for _, p := range slices.Sorted(maps.Keys(all)) {
		d := difference{path: p}
		alike := true
		for i := range columns {
			v, ok := fields[i][p]
			if !ok {
				v = absent
			}
			d.values = append(d.values, v)
			alike = alike && v == d.values[0]
		}
		if !alike {
			out = append(out, d)
		}
	}
	return out
}

// document is the JSON of a view, or of the stored value.
func document(o *evidence.Object, column string) json.RawMessage {
	if column == stored {
		return o.Stored.Value
	}
	return o.Views[column].Object
}

// leaves are the values of a document by their paths.
func leaves(document json.RawMessage) map[string]string {
	var root map[string]any
	if json.Unmarshal(document, &root) != nil {
		return nil
	}
	prune(root)
	out := map[string]string{}
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			for k, e := range m {
				walk(prefix+"."+k, e)
			}
			return
		}
		out[strings.TrimPrefix(prefix, ".")] = value(v)
	}
	walk("", root)
	delete(out, "")
	return out
}

func prune(root map[string]any) {
	delete(root, "apiVersion")
	if m, ok := root["metadata"].(map[string]any); ok {
		delete(m, "managedFields")
		delete(m, "resourceVersion")
	}
}

// value is a leaf as it is shown: strings bare, the rest as JSON.
func value(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// sheet is an object side by side: a column for each version and one for its stored value, where that is known.
type sheet struct {
	columns []string // names of versions, and stored
	rows    []sheetRow
	refused []string // what the server said where it did not show the object at a version
}

// answerRow is the name of the row of statuses; it is there where one of them is not 200.
const answerRow = "answer"

type sheetRow struct {
	name  string
	cells []string // one a column
}

// newSheet lays an object out: how it reads at each version, how it is stored and was before the step, and the fields
// that are not alike everywhere.
func newSheet(before *evidence.Observation, o *evidence.Object, order []string) sheet {
	s := sheet{columns: inOrder(order, maps.Keys(o.Views))}
	answer := sheetRow{name: answerRow}
	api, revision := sheetRow{name: "apiVersion"}, sheetRow{name: "resourceVersion"}
	for _, v := range s.columns {
		view := o.Views[v]
		answer.cells = append(answer.cells, fmt.Sprint(view.Status))
		api.cells = append(api.cells, field(view, "apiVersion"))
		revision.cells = append(revision.cells, field(view, "metadata", "resourceVersion"))
		if view.Status != 200 && view.Message != "" {
			s.refused = append(s.refused, v+": "+firstLine(view.Message))
		}
	}
	size := sheetRow{name: "bytes", cells: make([]string, len(s.columns))}
	if o.Stored != nil {
		s.columns = append(s.columns, stored)
		answer.cells = append(answer.cells, "")
		addStored(&api, &revision, &size, before.Object(o.Name), o)
	}
	if slices.ContainsFunc(answer.cells, func(c string) bool { return c != "200" && c != "" }) {
		s.rows = append(s.rows, answer)
	}
	s.rows = append(s.rows, api, revision)
	if o.Stored != nil {
		s.rows = append(s.rows, size)
	}
	readable := columns(o, order)
	for _, d := range differences(o, readable) {
		row := sheetRow{name: d.path, cells: make([]string, len(s.columns))}
		for i, c := range s.columns {
			if j := slices.Index(readable, c); j >= 0 {
				row.cells[i] = d.values[j]
			}
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// addStored fills the column of the stored value in, with what it was before where that is known.
func addStored(api, revision, size *sheetRow, was, o *evidence.Object) {
	add := func(row *sheetRow, what, now, then string) {
		if then != "" && then != now {
			now += ", was " + then
		}
		row.cells = append(row.cells, what+now)
	}
	var version, mod, length string
	if was != nil && was.Stored != nil {
		version, mod, length = was.StoredVersion(), fmt.Sprint(was.Stored.ModRevision), Number(was.Stored.Size)
	}
	add(api, "", o.StoredVersion(), version)
	add(revision, "mod revision ", fmt.Sprint(o.Stored.ModRevision), mod)
	add(size, "", Number(o.Stored.Size), length)
}

// field is a field of a view as it is shown, the version alone of an apiVersion; empty where the view is an error.
func field(v *evidence.View, path ...string) string {
	f, ok := v.Field(path...)
	if !ok {
		return ""
	}
	text := value(f)
	if path[0] == "apiVersion" {
		text = text[strings.LastIndexByte(text, '/')+1:]
	}
	return text
}

// managers says who wrote at which version; empty where the step did not change that.
func managers(before *evidence.Observation, o *evidence.Object) string {
	told := func(o *evidence.Object) string {
		var out []string
		for _, m := range o.Managers {
			name := m.Manager
			if m.Subresource != "" {
				name += "/" + m.Subresource
			}
			out = append(out, name+" "+m.APIVersion[strings.LastIndexByte(m.APIVersion, '/')+1:])
		}
		if len(out) == 0 {
			return "nobody"
		}
		return strings.Join(out, ", ")
	}
	was := before.Object(o.Name)
	if was == nil || told(was) == told(o) {
		return ""
	}
	return told(o) + "; were " + told(was)
}

// rewritten sums a rewrite up.
func rewritten(r *rewrite.Result) string {
	if m := r.Migration; m != nil {
		return fmt.Sprintf("%s written at %s by the StorageVersionMigration %s, %s; the first after %s; the CRD's StorageMigrating: %s",
			Number(r.Written), r.Target, m.Name, m.State, m.Waited(), m.CRD)
	}
	out := []string{Number(r.Written) + " written at " + r.Target}
	for _, part := range []struct {
		n    int
		what string
	}{{r.Unchanged, "needed no write"}, {r.Relabelled, "relabelled"}, {r.Gone, "deleted meanwhile"}, {r.Conflicts, "conflicts met"}} {
		if part.n > 0 {
			out = append(out, Number(part.n)+" "+part.what)
		}
	}
	return strings.Join(append(out, Number(len(r.Failures))+" failed"), ", ")
}

// inOrder sorts names as they stand in order; those that do not come last, by name.
func inOrder(order []string, names func(func(string) bool)) []string {
	return slices.SortedFunc(names, func(a, b string) int {
		i, j := slices.Index(order, a), slices.Index(order, b)
		switch {
		case i >= 0 && j >= 0:
			return i - j
		case i >= 0:
			return -1
		case j >= 0:
			return 1
		}
		return strings.Compare(a, b)
	})
}
