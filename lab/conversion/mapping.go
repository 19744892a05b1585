package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mapping says how objects of one version become objects of another: the operations, in their order. None at all is good
// too; then only the apiVersion changes.
//
//	{From: "v1alpha1", To: "v1beta1", Do: []Operation{Rename("spec.label", "displayName"), Stash("spec.color")}},
//	{From: "v1beta1", To: "v1alpha1", Do: []Operation{Rename("spec.displayName", "label")}},
type Mapping struct {
	From, To string // versions, without the group
	Do       []Operation
}

// Renames are the mappings both ways where a field has another name in the new version.
func Renames(old, latest, path, name string) []Mapping {
	was := path[strings.LastIndexByte(path, '.')+1:]
	return []Mapping{
		{From: old, To: latest, Do: []Operation{Rename(path, name)}},
		{From: latest, To: old, Do: []Operation{Rename(strings.TrimSuffix(path, was)+name, was)}},
	}
}

// Operation is one change to an object. Paths are names of fields parted by dots, such as spec.label; they lead through
// objects, not lists, and not into apiVersion, kind and metadata. A field that is not there is no error: nothing is done.
type Operation struct {
	Op    Op
	Path  string
	To    string // of Rename the new name, of Move the new path
	Value any    // of Default
}

// Op is what an Operation does.
type Op string

// The operations.
const (
	OpRename  Op = "rename"
	OpMove    Op = "move"
	OpDefault Op = "default"
	OpDrop    Op = "drop"
	OpStash   Op = "stash"
	OpNumber  Op = "number"
	OpText    Op = "text"
)

// Rename gives a field another name in the same place.
func Rename(path, name string) Operation { return Operation{Op: OpRename, Path: path, To: name} }

// Move puts a field elsewhere, and makes the objects on the way there.
func Move(path, to string) Operation { return Operation{Op: OpMove, Path: path, To: to} }

// Default sets a field that is not there. Like a default in a schema, it does so only where the object that the field
// belongs to is there.
func Default(path string, value any) Operation {
	return Operation{Op: OpDefault, Path: path, Value: value}
}

// Drop removes a field for good.
func Drop(path string) Operation { return Operation{Op: OpDrop, Path: path} }

// Stash keeps a field that the other version lacks in an annotation. The Mapping back restores it without being told to.
func Stash(path string) Operation { return Operation{Op: OpStash, Path: path} }

// Number makes a whole number of a text. A text that is none cannot be converted, nor what is no text.
func Number(path string) Operation { return Operation{Op: OpNumber, Path: path} }

// Text makes a text of a number, as it is written.
func Text(path string) Operation { return Operation{Op: OpText, Path: path} }

// StashPrefix begins the annotation that keeps the fields of a version; the version follows.
const StashPrefix = "conversion.crdlab.dev/"

type pair struct{ from, to string }

// mappings are compiled Mappings.
type mappings map[pair]*mapping

type mapping struct {
	do      []operation
	restore [][]string // what the Mapping back has stashed
}

type operation struct {
	op       Op
	path, to []string
	value    any
}

func compile(all []Mapping) (mappings, error) {
	out := mappings{}
	for _, m := range all {
		p := pair{m.From, m.To}
		if m.From == "" || m.To == "" || m.From == m.To || out[p] != nil {
			return nil, fmt.Errorf("the mapping from %q to %q: it needs two versions, and may be there but once", m.From, m.To)
		}
		out[p] = &mapping{}
		for _, o := range m.Do {
			c, err := o.compile()
			if err != nil {
				return nil, fmt.Errorf("the mapping from %s to %s: %s %q: %w", m.From, m.To, o.Op, o.Path, err)
			}
			out[p].do = append(out[p].do, c)
		}
	}
	for p, m := range out {
		back := out[pair{p.to, p.from}]
		for _, o := range m.do {
			if o.op == OpStash && back != nil {
				back.restore = append(back.restore, o.path)
			}
		}
	}
	return out, nil
}

func (o Operation) compile() (c operation, err error) {
	c.op = o.Op
	if c.path, err = parsePath(o.Path); err != nil {
		return c, err
	}
	switch o.Op {
	case OpRename:
		if o.To == "" || strings.Contains(o.To, ".") {
			return c, fmt.Errorf("%q is no name", o.To)
		}
		c.to = append(slices.Clone(c.path[:len(c.path)-1]), o.To)
		_, err = parsePath(strings.Join(c.to, "."))
	case OpMove:
		c.to, err = parsePath(o.To)
	case OpDefault:
		var raw []byte
		if raw, err = json.Marshal(o.Value); err == nil {
			err = decode(raw, &c.value)
		}
	case OpNumber, OpText:
		c.to = c.path
	case OpDrop, OpStash:
	default:
		err = fmt.Errorf("there is no such operation")
	}
	return c, err
}

func parsePath(s string) ([]string, error) {
	path := strings.Split(s, ".")
	if slices.Contains(path, "") {
		return nil, fmt.Errorf("%q is no path of fields, such as spec.label", s)
	}
	if slices.Contains([]string{"apiVersion", "kind", "metadata"}, path[0]) {
		return nil, fmt.Errorf("a mapping must leave %s alone", path[0])
	}
	return path, nil
}

// convert changes an object in place.
func (all mappings) convert(object map[string]any, p pair) error {
	if p.from == p.to {
		return nil
	}
	m := all[p]
	if m == nil {
		return fmt.Errorf("there is no conversion from %s to %s", p.from, p.to)
	}
	own, err := openStash(object, p.from)
	if err != nil {
		return err
	}
	for _, o := range m.do {
		if err := o.apply(object, own); err != nil {
			return fmt.Errorf("%s %s: %w", o.op, strings.Join(o.path, "."), err)
		}
	}
	if err := own.close(); err != nil {
		return err
	}
	return m.unstash(object, p.to)
}

func (o operation) apply(object map[string]any, stashed *stash) error {
	value, there, err := unstructured.NestedFieldNoCopy(object, o.path...)
	if err != nil {
		return err
	}
	switch o.op {
	case OpDefault:
		parent, parentThere, err := unstructured.NestedFieldNoCopy(object, o.path[:len(o.path)-1]...)
		if err != nil || there || !parentThere || parent == nil {
			return err
		}
		return unstructured.SetNestedField(object, o.value, o.path...)
	case OpStash:
		stashed.put(strings.Join(o.path, "."), value, there)
	}
	if !there {
		return nil
	}
	switch o.op {
	case OpNumber:
		value, err = numberOf(value)
	case OpText:
		value, err = textOf(value)
	}
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(object, o.path...)
	if o.to != nil {
		return unstructured.SetNestedField(object, value, o.to...)
	}
	return nil
}

func numberOf(value any) (any, error) {
	text, isText := value.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if !isText || err != nil {
		return nil, fmt.Errorf("%q is no whole number", fmt.Sprint(value))
	}
	return json.Number(strconv.FormatInt(n, 10)), nil
}

func textOf(value any) (any, error) {
	n, isNumber := value.(json.Number)
	if !isNumber {
		return nil, fmt.Errorf("%q is no number", fmt.Sprint(value))
	}
	return n.String(), nil
}

// unstash restores what the Mapping back has stashed. A field that was set since then keeps what it was set to; one that
// has no place any more stays stashed.
func (m *mapping) unstash(object map[string]any, version string) error {
	if len(m.restore) == 0 {
		return nil
	}
	kept, err := openStash(object, version)
	if err != nil {
		return err
	}
	for _, path := range m.restore {
		name := strings.Join(path, ".")
		value, stashed := kept.fields[name]
		if !stashed {
			continue
		}
		_, there, err := unstructured.NestedFieldNoCopy(object, path...)
		if err == nil && !there {
			err = unstructured.SetNestedField(object, value, path...)
		}
		if err == nil {
			kept.put(name, nil, false)
		}
	}
	return kept.close()
}

// stash is the annotation in which the fields of one version are kept.
type stash struct {
	object  map[string]any
	path    []string
	fields  map[string]any
	changed bool
}

// openStash reads the annotation. People can edit it: what cannot be read is left as it is, until it is written anew.
func openStash(object map[string]any, version string) (*stash, error) {
	s := &stash{object: object, path: []string{"metadata", "annotations", StashPrefix + version}}
	raw, there, err := unstructured.NestedFieldNoCopy(object, s.path...)
	if err != nil {
		return nil, err
	}
	if text, isText := raw.(string); there && isText {
		_ = checkedDecode([]byte(text), &s.fields)
	}
	if s.fields == nil {
		s.fields = map[string]any{}
	}
	return s, nil
}

func (s *stash) put(name string, value any, there bool) {
	_, was := s.fields[name]
	s.changed = s.changed || was || there
	delete(s.fields, name)
	if there {
		s.fields[name] = value
	}
}

func (s *stash) close() error {
	if !s.changed {
		return nil
	}
	if len(s.fields) > 0 {
		raw, err := encode(s.fields)
		if err != nil {
			return err
		}
		if all, _, _ := unstructured.NestedFieldNoCopy(s.object, s.path[:2]...); all == nil {
			unstructured.RemoveNestedField(s.object, s.path[:2]...) // a null has no place for it
		}
		return unstructured.SetNestedField(s.object, string(raw), s.path...)
	}
	unstructured.RemoveNestedField(s.object, s.path...)
	if rest, _, _ := unstructured.NestedMap(s.object, s.path[:2]...); len(rest) == 0 {
		unstructured.RemoveNestedField(s.object, s.path[:2]...)
	}
	return nil
}

// decode reads JSON and keeps its numbers as they are written.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// encode writes JSON as others write it: without escapes for HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
