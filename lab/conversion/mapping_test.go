package conversion

import (
	"strings"
	"testing"
)

// pairOf compiles what is done from v1 to v2, and from v2 to v1.
func pairOf(t *testing.T, there, back []Operation) mappings {
	t.Helper()
	m, err := compile([]Mapping{{From: "v1", To: "v2", Do: there}, {From: "v2", To: "v1", Do: back}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// converted is an object after a conversion, as JSON.
func converted(t *testing.T, m mappings, from, to, object string) string {
	t.Helper()
	var o map[string]any
	if err := decode([]byte(object), &o); err != nil {
		t.Fatal(err)
	}
	if err := m.convert(o, pair{from, to}); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	out, err := encode(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestOperations(t *testing.T) {
	for _, c := range []struct {
		do       Operation
		in, want string
	}{
		{Rename("spec.a", "b"), `{"spec":{"a":1}}`, `{"spec":{"b":1}}`},
		{Rename("spec.a", "b"), `{"spec":{}}`, `{"spec":{}}`},
		{Rename("spec.a", "b"), `{"spec":{"a":null}}`, `{"spec":{"b":null}}`},
		{Move("spec.a", "spec.x.y"), `{"spec":{"a":[1,{"z":2}]}}`, `{"spec":{"x":{"y":[1,{"z":2}]}}}`},
		{Move("spec.a", "spec.b"), `{}`, `{}`},
		{Default("spec.a", map[string]int{"n": 1}), `{"spec":{}}`, `{"spec":{"a":{"n":1}}}`},
		{Default("spec.a", 1), `{"spec":{"a":2}}`, `{"spec":{"a":2}}`},
		{Default("spec.a", 1), `{}`, `{}`},
		{Drop("spec.a"), `{"spec":{"a":1,"b":2}}`, `{"spec":{"b":2}}`},
		{Drop("spec"), `{"spec":{"a":1}}`, `{}`},
		{Number("spec.a"), `{"spec":{"a":"-12"}}`, `{"spec":{"a":-12}}`},
		{Number("spec.a"), `{"spec":{}}`, `{"spec":{}}`},
		{Text("spec.a"), `{"spec":{"a":12}}`, `{"spec":{"a":"12"}}`},
		{Text("spec.a"), `{"spec":{}}`, `{"spec":{}}`},
	} {
		if got := converted(t, pairOf(t, []Operation{c.do}, nil), "v1", "v2", c.in); got != c.want {
			t.Errorf("%s %s: %s became %s, want %s", c.do.Op, c.do.Path, c.in, got, c.want)
		}
	}
}

// TestWhatCannotBeConverted is an error that names the field and the value, and leaves the object alone.
func TestWhatCannotBeConverted(t *testing.T) {
	for _, c := range []struct {
		do            Operation
		object, value string
	}{
		{Number("spec.a"), `{"spec":{"a":"many"}}`, `"many"`},
		{Number("spec.a"), `{"spec":{"a":"1.5"}}`, `"1.5"`},
		{Number("spec.a"), `{"spec":{"a":1}}`, `"1"`},
		{Text("spec.a"), `{"spec":{"a":"1"}}`, `"1"`},
	} {
		var o map[string]any
		if err := decode([]byte(c.object), &o); err != nil {
			t.Fatal(err)
		}
		err := pairOf(t, []Operation{c.do}, nil).convert(o, pair{"v1", "v2"})
		if err == nil || !strings.Contains(err.Error(), "spec.a") || !strings.Contains(err.Error(), c.value) {
			t.Errorf("%s of %s: %v", c.do.Op, c.object, err)
		}
		if left, err := encode(o); err != nil || string(left) != c.object {
			t.Errorf("%s of %s left %s, %v", c.do.Op, c.object, left, err)
		}
	}
}

func TestNumbersAndTextsStayAsTheyAreWritten(t *testing.T) {
	object := `{"spec":{"big":12345678901234567890123,"float":1.0,"exponent":1e400,"small":-0,"text":"<a> & é \u2028"}}`
	if got := converted(t, pairOf(t, nil, nil), "v1", "v2", object); got != strings.NewReplacer(
		`"big":12345678901234567890123,"float":1.0,"exponent":1e400`, `"big":12345678901234567890123,"exponent":1e400,"float":1.0`).Replace(object) {
		t.Errorf("%s became %s", object, got)
	}
	m := pairOf(t, []Operation{Stash("spec.big")}, nil)
	there := converted(t, m, "v1", "v2", `{"metadata":{},"spec":{"big":12345678901234567890123}}`)
	if back := converted(t, m, "v2", "v1", there); !strings.Contains(back, `"big":12345678901234567890123`) {
		t.Errorf("a number came back otherwise from the stash: %s", back)
	}
}

func TestAStashedFieldComesBack(t *testing.T) {
	m := pairOf(t, []Operation{Stash("spec.color"), Stash("spec.deep.er"), Rename("spec.label", "displayName")},
		[]Operation{Rename("spec.displayName", "label")})
	for _, object := range []string{
		`{"metadata":{"name":"one"},"spec":{"color":"red","deep":{"er":{"n":1.50}},"label":"x"}}`,
		`{"metadata":{"annotations":{"own":"kept"},"name":"one"},"spec":{"color":null}}`,
		`{"metadata":{"name":"one"},"spec":{"label":"x"}}`,
		`{"metadata":{"name":"one"}}`,
	} {
		there := converted(t, m, "v1", "v2", object)
		if strings.Contains(there, `"color"`) || strings.Contains(object, "color") != strings.Contains(there, "spec.color") {
			t.Errorf("%s became %s: the field must be in the annotation alone", object, there)
		}
		if back := converted(t, m, "v2", "v1", there); back != object {
			t.Errorf("%s came back as %s", object, back)
		}
	}
}

func TestAStashDoesNotOverwriteAndCannotReachElsewhere(t *testing.T) {
	m := pairOf(t, []Operation{Stash("spec.color")}, nil)
	note := func(content string) string {
		return `{"metadata":{"annotations":{"conversion.crdlab.dev/v1":` + content + `},"name":"one"}`
	}
	for _, c := range []struct{ what, in, want string }{
		{"the field was set meanwhile", note(`"{\"spec.color\":\"red\"}"`) + `,"spec":{"color":"blue"}}`, `{"metadata":{"name":"one"},"spec":{"color":"blue"}}`},
		{"a path that nobody stashes", note(`"{\"metadata.name\":\"two\"}"`) + `}`, note(`"{\"metadata.name\":\"two\"}"`) + `}`},
		{"an annotation that is no JSON", note(`"red"`) + `,"spec":{}}`, note(`"red"`) + `,"spec":{}}`},
		{"no place to put it", note(`"{\"spec.color\":\"red\"}"`) + `,"spec":null}`, note(`"{\"spec.color\":\"red\"}"`) + `,"spec":null}`},
	} {
		if got := converted(t, m, "v2", "v1", c.in); got != c.want {
			t.Errorf("%s: %s became %s, want %s", c.what, c.in, got, c.want)
		}
	}
	// Whoever removes the field at its own version does not get it back.
	if got := converted(t, m, "v1", "v2", note(`"{\"spec.color\":\"red\"}"`)+`,"spec":{}}`); strings.Contains(got, "red") {
		t.Errorf("what was removed is still stashed: %s", got)
	}
}

func TestAMappingThatCannotBeIsRefused(t *testing.T) {
	one := func(o Operation) []Mapping { return []Mapping{{From: "v1", To: "v2", Do: []Operation{o}}} }
	for _, c := range []struct {
		all  []Mapping
		want string
	}{
		{one(Rename("spec.a", "b.c")), `"b.c" is no name`},
		{one(Rename("spec", "metadata")), "must leave metadata alone"},
		{one(Move("spec.a", "metadata.name")), "must leave metadata alone"},
		{one(Move("spec.a", "")), "is no path"},
		{one(Drop("kind")), "must leave kind alone"},
		{one(Drop("spec..a")), "is no path"},
		{one(Default("spec.a", func() {})), "unsupported type"},
		{one(Operation{Op: "swap", Path: "spec.a"}), "no such operation"},
		{[]Mapping{{From: "v1", To: "v1"}}, "two versions"},
		{[]Mapping{{From: "v1", To: "v2"}, {From: "v1", To: "v2"}}, "but once"},
	} {
		if _, err := compile(c.all); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.all, err, c.want)
		}
	}
}
