package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// signs writes the rows of a scene's last subject as the panes' signs and the path.
func signs(s *scene) map[string]string {
	out := map[string]string{}
	for _, r := range s.subjects[len(s.subjects)-1].rows {
		marks := ""
		for _, c := range r.cells {
			marks += c.sign.String()
		}
		if strings.TrimSpace(marks) != "" {
			out[r.path] = marks
		}
	}
	return out
}

func scenery(st *lab.State, selected string) *scene {
	step := st.Steps[st.Current]
	return newScene(st, step, st.Live, step.Before, selected, false)
}

func TestSignsOfARewrite(t *testing.T) {
	st := at(4, lab.Applied, sixNew)
	st.Steps[4].Before = sixMixed
	want := map[string]string{"apiVersion": "  ~", "metadata.resourceVersion": "~~~", "spec.tier": "∅++"}
	if got := signs(scenery(st, "alpha")); !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestANewObjectIsMarkedAgainstTheOneBefore(t *testing.T) {
	s := scenery(applied(), "")
	if len(s.subjects) != 2 || s.subjects[0].name != "alpha" || s.subjects[1].against != "alpha" {
		t.Fatalf("the subjects are %v", s.subjects)
	}
	want := map[string]string{"apiVersion": "  ~", "metadata.name": "~~~", "spec.tier": "∅++"}
	if got := signs(s); !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestTheFirstObjectIsNotAllNew(t *testing.T) {
	st := at(0, lab.Applied, fiveOld)
	st.Steps[0].Before = &evidence.Observation{Stored: evidence.Stored{Access: true}}
	want := map[string]string{"metadata.name": "+++", "spec.tier": "∅∅∅"}
	if got := signs(scenery(st, "")); !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestANewViewIsMarkedAtItsFirstLine(t *testing.T) {
	was := seen(older, []string{older}, 1, widget("alpha", 12, "red", 1, older, ""))
	was.CRD.Versions = was.CRD.Versions[:1]
	delete(was.Objects[0].Views, newer)
	st := at(1, lab.Applied, seen(older, []string{older}, 1, oldAlpha))
	st.Steps[1].Before = was
	want := map[string]string{"apiVersion": " + ", "spec.tier": "∅∅∅"}
	if got := signs(scenery(st, "")); !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestALostFieldIsShownAsItWas(t *testing.T) {
	lost := widget("alpha", 41, "red", 1, newer, "")
	st := at(4, lab.Applied, seen(newer, []string{newer}, 1, lost))
	st.Steps[4].Before = seen(newer, []string{newer}, 1, newAlpha)
	s := scenery(st, "alpha")
	want := map[string]string{"metadata.resourceVersion": "~~~", "spec.tier": "∅--"}
	if got := signs(s); !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	for _, r := range s.subjects[0].rows {
		if r.path == "spec.tier" && r.cells[1].text != "standard" {
			t.Errorf("it is shown as %q", r.cells[1].text)
		}
	}
}

// TestWhyALineIsMissing derives each reason from what was observed.
func TestWhyALineIsMissing(t *testing.T) {
	why := func(live *evidence.Observation, pane int) string {
		for _, r := range scenery(at(3, lab.Ready, live), "alpha").subjects[0].rows {
			if r.path == "spec.tier" {
				return r.cells[pane].text
			}
		}
		return ""
	}
	for pane, want := range []string{"not in v1alpha1", "not in the bytes", "not written"} {
		if got := why(fiveOld, pane); got != want {
			t.Errorf("pane %d: %q, not %q", pane, got, want)
		}
	}
	hidden := seen(older, []string{older}, 1, widget("alpha", 12, "red", 1, newer, "gold"))
	hidden.Objects[0].Views[newer] = &evidence.View{Status: 200, Object: oldAlpha.Views[newer].Object}
	if got := why(hidden, 1); got != "not in this view" {
		t.Errorf("a field that is in the bytes and the schema is %q", got)
	}
}

func TestAnUnservedViewSaysSoAndTheOthersStayLevel(t *testing.T) {
	s := scenery(unserved(), "")
	sub := s.subjects[0]
	if f := sub.faults[0]; f.status != 404 || f.text != "404 page not found" {
		t.Errorf("the pane says %v", f)
	}
	for _, r := range sub.rows {
		if len(r.cells) != 3 || r.cells[0].sign != blank {
			t.Errorf("%s: %v", r.path, r.cells)
		}
	}
}

func TestManagedFieldsAreOneLineAnEntry(t *testing.T) {
	st := at(3, lab.Ready, fiveOld)
	s := newScene(st, st.Steps[3], st.Live, nil, "alpha", true)
	for _, r := range s.subjects[0].rows {
		if r.path == "metadata.managedFields.crdlab Update" {
			if got := r.cells[2].text; got != "v1alpha1 · color size" {
				t.Errorf("the entry is %q", got)
			}
			return
		}
	}
	t.Error("there is no entry")
}

func TestAKeptManifestIsOneLine(t *testing.T) {
	raw := json.RawMessage(`{"metadata":{"name":"alpha","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Widget\"}\n"}}}`)
	meta := decode(raw, false)["metadata"].(map[string]any)
	if got := inline(meta["annotations"]); !strings.HasPrefix(got, "kubectl.kubernetes.io/last-applied-configuration: {") {
		t.Errorf("%q", got)
	}
	other := decode(json.RawMessage(`{"metadata":{"annotations":{"a":"b"}}}`), false)["metadata"].(map[string]any)
	if _, rows := other["annotations"].(map[string]any); !rows {
		t.Error("an annotation of another kind has no row")
	}
}

func TestScalarsReadAsTheyWould(t *testing.T) {
	for in, want := range map[string]string{"red": "red", "12": `"12"`, "true": `"true"`, "": `""`, "2026-11-30T09:54:09Z": `"2026-11-30T09:54:09Z"`,
		"4f653df8-d320": "4f653df8-d320", "a: b": `"a: b"`, "a\x1b[2Jb": `"a\x1b[2Jb"`, "漢字": "漢字", " x": `" x"`} {
		if got := scalar(in); got != want {
			t.Errorf("%q is %s, not %s", in, got, want)
		}
	}
}

func TestNestedAndListedValuesStayLevel(t *testing.T) {
	parse := func(s string) map[string]any {
		var o map[string]any
		if err := json.Unmarshal([]byte(s), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	a, b := parse(`{"spec":{"deep":{"x":1,"y":[1,2]},"list":["a","b"]}}`), parse(`{"spec":{"list":["a"]}}`)
	rows := levelRows([]source{{now: a, was: a}, {now: b, was: b}}, withItself, nil, func(int, []string) string { return "why" })
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%d %s=%s|%s%s", r.depth, r.path, r.cells[0].text, r.cells[1].sign, r.cells[1].text))
	}
	want := "0 spec=| ;1 spec.deep=|∅why;2 spec.deep.x=1| ;2 spec.deep.y=[1, 2]| ;1 spec.list=[a, b]| [a]"
	if strings.Join(got, ";") != want {
		t.Errorf("%s\nnot %s", strings.Join(got, ";"), want)
	}
}

// TestLowerKeepsWhatNamesTheObject drops lines in the order of their worth.
func TestLowerKeepsWhatNamesTheObject(t *testing.T) {
	rows := scenery(at(3, lab.Ready, fiveOld), "alpha").subjects[0].rows
	for h := len(rows); h > 0; h-- {
		kept := map[string]bool{}
		for _, r := range lower(rows, h) {
			kept[r.path] = true
		}
		for _, path := range []string{"apiVersion", "metadata.name", "spec.color", "spec.size", "spec.tier"} {
			if !kept[path] {
				t.Errorf("at %d lines %s is gone", h, path)
			}
		}
		if kept["metadata.generation"] && !kept["metadata.resourceVersion"] {
			t.Errorf("at %d lines generation stays and resourceVersion goes", h)
		}
	}
}

func TestARefusalIsWantedOnlyWhereTheLessonWantsIt(t *testing.T) {
	st := refused()
	step := st.Steps[5]
	if x := wanted(step); len(x) != 1 || x[0].Status != 422 {
		t.Errorf("wanted: %v", x)
	}
	if x := unwanted(step); x != nil {
		t.Errorf("unwanted: %v", x)
	}
	plain := *step
	plain.Lesson = &lesson.Step{Actions: []lesson.Action{{ID: "remove"}}}
	if x := wanted(&plain); len(x) != 0 {
		t.Errorf("wanted though the lesson does not: %v", x)
	}
	if x := unwanted(&plain); x == nil || x.Status != 422 {
		t.Errorf("unwanted: %v", x)
	}
}
