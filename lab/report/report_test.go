package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/verdict"
)

// tell is the text of the whole fixture.
func tell(t *testing.T, s *lab.State, width int, colour bool) string {
	t.Helper()
	var out bytes.Buffer
	text := NewText(&out, width, colour)
	err := text.Begin(s)
	for _, step := range s.Steps[:3] {
		err = errors.Join(err, text.Step(s, step))
	}
	if err := errors.Join(err, text.End(s, "")); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestText(t *testing.T) {
	golden.RequireEqual(t, tell(t, fixture(), 80, false))
}

func TestTextInColour(t *testing.T) {
	colour := tell(t, fixture(), 80, true)
	if plain := tell(t, fixture(), 80, false); ansi.Strip(colour) != plain {
		t.Error("without its colours, the text is not the one that is written without colour")
	}
	for name, want := range map[string]string{"v1alpha1": "\x1b[35mv1alpha1\x1b[m", "v1beta1": "\x1b[36mv1beta1\x1b[m", "a failed check": "\x1b[31m✗\x1b[m"} {
		if !strings.Contains(colour, want) {
			t.Errorf("%s has not its colour", name)
		}
	}
}

func TestTextKeepsItsWidth(t *testing.T) {
	for _, width := range []int{60, 80, 100} {
		for l := range strings.Lines(tell(t, fixture(), width, true)) {
			if n := ansi.StringWidth(strings.TrimRight(l, "\n")); n > width {
				t.Errorf("at %d columns this line has %d: %q", width, n, ansi.Strip(l))
			}
			if plain := strings.TrimRight(ansi.Strip(l), "\n"); plain != strings.TrimRight(plain, " ") {
				t.Errorf("spaces at the end of %q", plain)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := Markdown(&out, fixture(), ""); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.String())
}

func TestRunJSON(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, NewRun(fixture(), "")); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.String())
}

func TestVerdictText(t *testing.T) {
	var out bytes.Buffer
	if err := NewText(&out, 80, false).Verdict(fixtureVerdict()); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.String())
}

// A command can be copied as it stands; all else keeps its width.
func TestCommandsStayWhole(t *testing.T) {
	for _, width := range []int{60, 80, 100} {
		var out bytes.Buffer
		if err := NewText(&out, width, true).Verdict(fixtureVerdict()); err != nil {
			t.Fatal(err)
		}
		whole := false
		for l := range strings.Lines(ansi.Strip(out.String())) {
			l = strings.TrimSuffix(l, "\n")
			if strings.TrimSpace(l) == longCommand {
				whole = true
			} else if ansi.StringWidth(l) > width {
				t.Errorf("at %d columns this line has %d: %q", width, ansi.StringWidth(l), l)
			}
		}
		if !whole {
			t.Errorf("at %d columns the command is broken:\n%s", width, out.String())
		}
	}
}

func TestVerdictJSON(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, NewVerdict(fixtureVerdict())); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.String())
}

func TestVerdictMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := MarkdownVerdict(&out, fixtureVerdict()); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.String())
}

// A program that reads the JSON must not have to ask whether a list is there.
func TestNoListIsNull(t *testing.T) {
	s := fixture()
	s.Steps = append(s.Steps, &lab.Step{ID: "bare", Question: "?", Phase: lab.Applied, Result: lesson.Passed, Actions: []lab.Action{{ID: "a"}},
		Exchanges: []evidence.Exchange{{Method: "GET"}}, Verdict: &verdict.Verdict{Findings: []verdict.Finding{{ID: "f"}}},
		Observations: []*evidence.Observation{{After: "before"}, {CRD: &evidence.CRD{}, Objects: []*evidence.Object{{Name: "x"}}}}})
	var out bytes.Buffer
	if err := errors.Join(WriteJSON(&out, NewRun(s, "")), WriteJSON(&out, NewVerdict(&verdict.Verdict{})), WriteJSON(&out, NewTrackList(nil))); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(&out); ; {
		var document any
		if err := d.Decode(&document); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		findNull(t, "", document)
	}
}

func findNull(t *testing.T, path string, v any) {
	switch v := v.(type) {
	case nil:
		if !strings.HasSuffix(path, ".crd") { // null says that there is no CRD
			t.Errorf("%s is null", path)
		}
	case map[string]any:
		for k, e := range v {
			findNull(t, path+"."+k, e)
		}
	case []any:
		for _, e := range v {
			findNull(t, path+"[]", e)
		}
	}
}

func TestResultAndExitCode(t *testing.T) {
	passed := func() *lab.State { s := fixture(); s.Steps = s.Steps[:2]; return s }
	for name, c := range map[string]struct {
		change func(*lab.State)
		until  string
		want   lesson.Result
		code   int
	}{
		"every step passed":                  {func(*lab.State) {}, "", lesson.Passed, 0},
		"a check failed":                     {func(s *lab.State) { s.Steps[1].Result = lesson.Failed }, "", lesson.Failed, 1},
		"an action failed":                   {func(s *lab.State) { s.Steps[1].Err = io.EOF; s.Steps[1].Phase = lab.Ready }, "", lesson.Failed, 1},
		"the last was not applied":           {func(s *lab.State) { s.Steps[1].Phase = lab.Ready }, "", lesson.Unknown, 3},
		"the last was not wanted":            {func(s *lab.State) { s.Steps[1].Phase = lab.Coming }, "switch-storage", lesson.Passed, 0},
		"the wanted one was not applied":     {func(s *lab.State) { s.Steps[1].Phase = lab.Running }, "attempt-removal", lesson.Unknown, 3},
		"a check was skipped":                {func(s *lab.State) { s.Steps[0].Checks[1].Result = lesson.Skipped }, "", lesson.Unknown, 3},
		"a check was skipped, another fails": {func(s *lab.State) { s.Steps[0].Checks[1].Result = lesson.Skipped; s.Steps[1].Result = lesson.Failed }, "", lesson.Failed, 1},
	} {
		s := passed()
		c.change(s)
		if got := Result(s, c.until); got != c.want || ExitCode(got) != c.code {
			t.Errorf("%s: %s, exit code %d; want %s, %d", name, got, ExitCode(got), c.want, c.code)
		}
	}
	for answer, code := range map[verdict.Answer]int{verdict.Complete: 0, verdict.Incomplete: 1, verdict.Unknown: 3} {
		if got := VerdictExitCode(answer); got != code {
			t.Errorf("verdict %s: exit code %d, want %d", answer, got, code)
		}
	}
}

func TestManyRequestsAreFolded(t *testing.T) {
	step := &lab.Step{Actions: []lab.Action{{ID: "a"}}}
	for i := range 100 {
		step.Exchanges = append(step.Exchanges, evidence.Exchange{Actor: evidence.ByStep, Method: "PATCH", Status: 200, Path: collection + "/w" + string(rune('a'+i%26))})
		step.Actions[0].Exchanges = append(step.Actions[0].Exchanges, i)
	}
	if got := requests(step, step.Actions[0]); len(got) != 1 || got[0].more != 99 {
		t.Errorf("a hundred patches of one kind are told as %d requests: %+v", len(got), got)
	}
	step.Exchanges[50].Status = 409
	if got := requests(step, step.Actions[0]); len(got) != 3 || got[1].Status != 409 {
		t.Errorf("a refusal in their middle does not stand out: %+v", got)
	}
}

// Who interrupts a run is not told that the step that was under way has failed.
func TestAnInterruptedRun(t *testing.T) {
	s := fixture()
	s.Steps[2].Phase, s.Steps[2].Result, s.Steps[2].Took = lab.Ready, "", 0
	var out bytes.Buffer
	if err := NewText(&out, 80, false).Interrupted(s); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()[strings.LastIndex(out.String(), "─")+len("─"):]); got != "○ interrupted · 2 steps passed, 2 not run · 330 ms" {
		t.Errorf("%q", got)
	}
	if r := Result(Interrupted(s), ""); r != lesson.Unknown {
		t.Errorf("its result is %s", r)
	}
	if Result(s, "") != lesson.Failed {
		t.Error("the state that it was made of has changed")
	}
	s.Steps[1].Result = lesson.Failed
	if r := Result(Interrupted(s), ""); r != lesson.Failed {
		t.Errorf("a step before it failed, and the result is %s", r)
	}
}

func TestThousandsStandApart(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	s := fixture()
	for _, step := range s.Steps[:3] {
		step.After.Stored.ByVersion["v1beta1"], step.After.Stored.Total = 12345, 12350
	}
	s.Steps[1].Rewrite = &rewrite.Result{Target: "v1beta1", Written: 2000}
	s.Steps[0].After.Object("alpha").Stored.Size = 1458
	text := tell(t, s, 80, false)
	for _, want := range []string{" 12,345\n", "2,000 written at v1beta1", "1,458, was 458"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// A reader that has gone (| head) is an error of Text, so that the run can end.
func TestTextSaysThatNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	s := fixture()
	if err := NewText(w, 80, false).Step(s, s.Steps[0]); err == nil {
		t.Error("no error")
	}
}

func TestTracks(t *testing.T) {
	list := &TrackList{Tracks: []Track{
		{ID: "migrate", Title: "One field more", Summary: "Every step changes *one* thing and shows what it did, to the same object, at both versions and in etcd.",
			Strategy: "None", Versions: []string{"v1alpha1", "v1beta1"}, Minutes: 25,
			Steps: []TrackStep{{ID: "create-v1alpha1", Title: "Create v1alpha1"},
				{ID: "rewrite", Title: "Rewrite every object", WhatIf: []string{"pitfalls/flip-back", "pitfalls/large-rewrite", "pitfalls/ratcheting"}}, {ID: "verify", Title: "Verify"}}},
		{ID: "webhook", Title: "A field with another name", Strategy: "Webhook", Minutes: 1, Steps: []TrackStep{{ID: "create", Title: "Create"}}},
	}}
	var out bytes.Buffer
	if err := NewText(&out, 80, false).Tracks(list); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.String())
}

func TestFlagsStayWhole(t *testing.T) {
	for width := 16; width < 40; width++ {
		for _, l := range wrap("it is asked with the flag --drop of the command", width) {
			if strings.HasSuffix(l, "-") || strings.HasPrefix(l, "drop") {
				t.Errorf("at %d columns: %q", width, l)
			}
		}
	}
	if got := wrap("--drop v1", 20); len(got) != 1 || got[0] != "--drop v1" {
		t.Errorf("%q", got)
	}
}
