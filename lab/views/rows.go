package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
)

// sign says what became of a line, or why it is not there.
type sign byte

const (
	same    sign = iota
	added        // + since the observation before
	changed      // ~
	gone         // - it is shown as it was
	absent       // ∅ another pane has it, this one has not
	blank        // nothing to say: the line's parent is absent already
)

func (s sign) String() string { return [...]string{" ", "+", "~", "-", "∅", " "}[s] }

// row is one line of an object in all panes. The panes stay level, so that the eye can read across.
type row struct {
	path   string // dotted
	key    string
	depth  int
	shrink int // 0 stays; the higher, the earlier it goes where the pane is low
	cells  []cell
}

// cell is a row in one pane.
type cell struct {
	text   string // of a leaf; for absent, why
	sign   sign
	remark bool // of ours, not a line of the object
}

func (r row) news() bool {
	return slices.ContainsFunc(r.cells, func(c cell) bool { return c.sign == added || c.sign == changed || c.sign == gone })
}

// source is what one pane shows of an object, and what it showed before.
type source struct {
	now, was map[string]any // nil where there is nothing
	remark   map[string]string
	wasMark  map[string]string
}

// comparison is how signs are found.
type comparison int

const (
	withItself  comparison = iota // the object, as it was before
	withAnother                   // a new object, with the one that was shown before: of values only name and version
	withNothing                   // there is nothing before it
)

// tree builds the level rows of an object from its sources.
type tree struct {
	sources  []source
	mode     comparison
	disputed []string // fields of spec that have a row in any case
	why      func(pane int, path []string) string
	rows     []row
}

func levelRows(sources []source, mode comparison, disputed []string, why func(pane int, path []string) string) []row {
	t := &tree{sources: sources, mode: mode, disputed: disputed, why: why}
	now, was := make([]any, len(sources)), make([]any, len(sources))
	for i, s := range sources {
		if s.now != nil {
			now[i] = s.now
		}
		if s.was != nil {
			was[i] = s.was
		}
	}
	t.branch(nil, now, was)
	return t.rows
}

// branch adds the rows below a path. A nil in now or was says that the pane has not even the path.
func (t *tree) branch(path []string, now, was []any) {
	for _, key := range t.keys(path, now, was) {
		at := append(slices.Clone(path), key)
		n, w := make([]any, len(now)), make([]any, len(was))
		branches, leaves := false, false
		for i := range now {
			n[i], w[i] = child(now[i], key), child(was[i], key)
			for _, v := range []any{n[i], w[i]} {
				if m, ok := v.(map[string]any); ok && len(m) > 0 {
					branches = true
				} else if v != nil {
					leaves = true
				}
			}
		}
		inner := branches && !leaves
		r := row{path: strings.Join(at, "."), key: label(key), depth: len(path), shrink: shrink(at)}
		for i := range now {
			r.cells = append(r.cells, t.cell(i, at, inner, now[i] != nil, n[i], w[i]))
		}
		if r.news() && !ticking(at) {
			r.shrink = 0
		}
		t.rows = append(t.rows, r)
		if inner {
			t.branch(at, n, w)
		}
	}
}

func (t *tree) cell(pane int, path []string, inner, parent bool, now, was any) cell {
	src := t.sources[pane]
	if m, ok := src.remark[strings.Join(path, ".")]; ok && now == nil {
		c := cell{text: m, remark: true}
		if old, had := src.wasMark[strings.Join(path, ".")]; had && old != m && t.mode == withItself {
			c.sign = changed
		}
		return c
	}
	c := cell{}
	if !inner {
		c.text = inline(now)
	}
	switch {
	case src.now == nil, !parent && was == nil:
		c.sign = blank
	case now == nil && was != nil && t.mode == withItself:
		c.sign = gone
		if !inner {
			c.text = inline(was)
		}
	case now == nil:
		c.sign, c.text = absent, t.why(pane, path)
	default:
		c.sign = t.compare(path, inner, src, now, was)
	}
	return c
}

// compare finds the sign of a line that is there.
func (t *tree) compare(path []string, inner bool, src source, now, was any) sign {
	first := len(path) == 1 && path[0] == "apiVersion"
	name := len(path) == 2 && path[0] == "metadata" && path[1] == "name"
	switch {
	case t.mode == withNothing:
		if name {
			return added
		}
	case src.was == nil: // the pane itself is new: its first line says so
		if first {
			return added
		}
	case was == nil:
		if t.mode == withAnother && path[0] == "metadata" {
			return same
		}
		return added
	case inner:
	case inline(now) != inline(was):
		if t.mode == withItself || first || name {
			return changed
		}
	}
	return same
}

func child(parent any, key string) any {
	m, ok := parent.(map[string]any)
	if !ok {
		return nil
	}
	return m[key]
}

// order is the order in which a person expects the keys at the top and in metadata; others follow by name.
var order = map[string]int{"apiVersion": 1, "kind": 2, "metadata": 3, "spec": 4, "status": 5}
var metadataOrder = map[string]int{"name": 1, "namespace": 2, "generation": 3, "creationTimestamp": 4, "deletionTimestamp": 5,
	"uid": 6, "resourceVersion": 7, "finalizers": 8, "labels": 9, "annotations": 10, "managedFields": 11}

func (t *tree) keys(path []string, now, was []any) []string {
	sides := [][]any{now}
	if t.mode == withItself { // what another object has is no line of this one
		sides = append(sides, was)
	}
	set := map[string]bool{}
	for _, side := range sides {
		for _, v := range side {
			m, _ := v.(map[string]any)
			for k, v := range m {
				if v != nil {
					set[k] = true
				}
			}
		}
	}
	var known map[string]int
	switch {
	case len(path) == 0:
		known = order
	case len(path) == 1 && path[0] == "metadata":
		known = metadataOrder
	case len(path) == 1 && path[0] == "spec":
		for _, f := range t.disputed {
			set[f] = true
		}
	}
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, y := known[a], known[b]
		switch {
		case x != 0 && y != 0:
			return x - y
		case x != 0:
			return -1
		case y != 0:
			return 1
		}
		return strings.Compare(a, b)
	})
	return keys
}

// shrink says how early a row goes: what names the object or its version and what was asked for never does.
func shrink(path []string) int {
	if len(path) == 1 && path[0] == "kind" {
		return 1
	}
	if len(path) < 2 || path[0] != "metadata" {
		return 0
	}
	switch path[1] {
	case "namespace":
		return 7
	case "generation":
		return 6
	case "labels", "annotations":
		return 5
	case "creationTimestamp":
		return 4
	case "uid":
		return 3
	case "resourceVersion":
		return 2
	}
	return 0
}

// ticking is what changes with every write: that it did is no reason to keep it where there is little room.
func ticking(path []string) bool {
	return len(path) == 2 && path[0] == "metadata" && (path[1] == "resourceVersion" || path[1] == "generation")
}

// lower drops the rows that matter least until the object fits.
func lower(rows []row, h int) []row {
	for level := 7; level > 0 && len(rows) > h; level-- {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.shrink == level })
	}
	return rows
}

// label is a key as it may be shown.
func label(key string) string { return clean(key) }

// inline writes a value on one line, as YAML would.
func inline(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return scalar(v)
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = inline(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for i, k := range keys {
			keys[i] = clean(k) + ": " + inline(v[k])
		}
		return "{" + strings.Join(keys, ", ") + "}"
	case spoken:
		return string(v)
	}
	return clean(fmt.Sprint(v))
}

// scalar quotes a string where YAML would, and where it would disturb the screen.
func scalar(s string) string {
	if s == "" || strings.IndexFunc(s, unsafe) >= 0 || strings.TrimSpace(s) != s || strings.ContainsAny(s[:1], "\"'[]{}&*!|>%@`#,?:-") ||
		strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return strconv.Quote(s)
	}
	switch s {
	case "true", "false", "null", "yes", "no", "on", "off", "~":
		return strconv.Quote(s)
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil || moment.MatchString(s) {
		return strconv.Quote(s)
	}
	return s
}

var moment = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

// spoken is a text that is not a value: it is shown as it is.
type spoken string

// decode reads an object. Its managedFields become one line an entry, or go.
func decode(raw json.RawMessage, managers bool) map[string]any {
	if len(raw) == 0 {
		return nil
	}
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&o) != nil {
		return nil
	}
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		return o
	}
	if a, ok := meta["annotations"].(map[string]any); ok && len(a) == 1 && text(a[lastApplied]) != "" {
		meta["annotations"] = spoken(lastApplied + ": " + clean(text(a[lastApplied]))) // long, and no news: one line, cut
	}
	entries, _ := meta["managedFields"].([]any)
	delete(meta, "managedFields")
	if managers && len(entries) > 0 {
		meta["managedFields"] = managed(entries)
	}
	return o
}

// lastApplied is where a client-side apply keeps the whole manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// managed makes one line of each entry of managedFields: who, how; at which version, what.
func managed(entries []any) map[string]any {
	out := map[string]any{}
	for _, e := range entries {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		key := text(m["manager"]) + " " + text(m["operation"])
		if sub := text(m["subresource"]); sub != "" {
			key += " /" + sub
		}
		version := text(m["apiVersion"])
		owned := briefly(fields("", m["fieldsV1"]))
		value := version[strings.LastIndexByte(version, '/')+1:] + " · " + strings.Join(owned, " ")
		if old, twice := out[key]; twice {
			value = string(old.(spoken)) + " | " + value
		}
		out[key] = spoken(clean(value))
	}
	return out
}

func text(v any) string { s, _ := v.(string); return s }

// briefly names owned fields as a person would: those of spec first and by their own names, of metadata only the kind.
func briefly(paths []string) []string {
	var spec, rest []string
	for _, p := range paths {
		name, inSpec := strings.CutPrefix(p, "spec.")
		switch {
		case inSpec:
			spec = append(spec, name)
			continue
		case strings.HasPrefix(p, "metadata."):
			name, _, _ = strings.Cut(strings.TrimPrefix(p, "metadata."), ".")
		}
		if !slices.Contains(rest, name) {
			rest = append(rest, name)
		}
	}
	return append(spec, rest...)
}

// fields lists the leaves of a fieldsV1.
func fields(prefix string, v any) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		if k != "." {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var out []string
	for _, k := range keys {
		name := strings.TrimPrefix(k, "f:")
		if prefix != "" {
			name = prefix + "." + name
		}
		if below := fields(name, m[k]); len(below) > 0 {
			out = append(out, below...)
		} else {
			out = append(out, name)
		}
	}
	return out
}

// missing says why a pane has not a line that another has, as far as it was observed.
func missing(obs *evidence.Observation, o *evidence.Object, version string, path []string) string {
	if version == "" {
		return "not written"
	}
	if len(path) >= 2 && path[0] == "spec" {
		if v := obs.Version(version); v != nil && len(v.Fields) > 0 && !slices.Contains(v.Fields, path[1]) {
			return "not in " + version
		}
	}
	if o.Stored != nil {
		if _, written := o.Stored.Field(path...); !written {
			return "not in the bytes"
		}
	}
	return "not in this view"
}
