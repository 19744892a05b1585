package views

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// inOrder says whether texts follow one another.
func inOrder(t *testing.T, said string, texts ...string) {
	t.Helper()
	at := 0
	for _, text := range texts {
		i := strings.Index(said[at:], text)
		if i < 0 {
			t.Errorf("%q does not stand after the one before it in\n%s", text, said)
			return
		}
		at += i + len(text)
	}
}

// told is the prose of a screen, without its colours and line breaks.
func toldOf(m *program) string {
	s := m.screen()
	return strings.Join(strings.Fields(ansi.Strip(strings.Join(s.prose(), " "))), " ")
}

func TestTheOrderIsAlwaysTheSame(t *testing.T) {
	for _, z := range [][2]int{{80, 24}, {100, 50}, {120, 30}, {160, 28}, {160, 45}, {200, 60}} {
		m, _ := with(t, refused, z[0], z[1])
		texts := []string{"refused, as intended", "✓ 0 of 6 objects"}
		if s := m.screen(); !s.aside {
			texts = slices.Insert(texts, 0, "Only a person")
		} else if !strings.Contains(ansi.Strip(strings.Join(s.card(), "\n")), "Only a person") {
			t.Errorf("%v: the explanation is neither in the text nor in the card", z)
		}
		if m.screen().lay.card.empty() {
			texts = slices.Insert(texts, 0, "You said 3, and so it is")
		}
		inOrder(t, toldOf(m), texts...)
	}
}

func TestTheExplanationStandsInTheCardOnlyWhole(t *testing.T) {
	for words := 5; words < 400; words += 15 {
		m, _ := with(t, func() *lab.State {
			st := applied()
			st.Steps[3].Explanation = strings.Repeat("word ", words) + "end."
			return st
		}, 160, 45)
		s := m.screen()
		inCard := strings.Contains(ansi.Strip(strings.Join(s.card(), "\n")), "end.")
		inText := strings.Contains(ansi.Strip(strings.Join(s.prose(), "\n")), "end.")
		if inCard == inText {
			t.Errorf("%d words: in the card %v, in the text %v", words, inCard, inText)
		}
	}
}

// TestTheTextTakesOnlyWhatThePanesCanSpare holds for texts of any length.
func TestTheTextTakesOnlyWhatThePanesCanSpare(t *testing.T) {
	grown := 0
	for n := range 40 {
		m, _ := with(t, func() *lab.State {
			st := at(2, lab.Applied, fiveOld)
			st.Steps[2].Result, st.Steps[2].Explanation = lesson.Passed, ""
			for i := range n {
				st.Steps[2].Checks = append(st.Steps[2].Checks, passed(fmt.Sprintf("check %d", i))...)
			}
			return st
		}, 160, 45)
		s := m.screen()
		v := s.scene.visible(s.lay.panes[0].h-2, false)
		for _, path := range []string{"kind", "metadata.name", "metadata.resourceVersion", "spec.tier"} {
			if !v.shows(path) {
				t.Errorf("%d checks: the panes lost %s", n, path)
			}
		}
		if s.lay.prose.h > 13 {
			grown++
		}
	}
	if grown == 0 {
		t.Error("the text never got more room")
	}
}

func TestAFailureSaysFirstWhatIsTheMatter(t *testing.T) {
	m, _ := with(t, unwantedRefusal, 120, 50)
	inOrder(t, toldOf(m), "500 InternalError unexpected", "create foxtrot: the server answered 500", "✗ foxtrot is stored at v1beta1", "wanted v1beta1",
		"seen nothing is stored", "▲ The webhook does not listen", "enter tries it again", "✓ storedVersions is [v1alpha1 v1beta1]")
	if m.screen().nextKeys(m.keys)[0].does == "try again" {
		t.Error("to try again is offered before what the hint says")
	}
	m, _ = with(t, func() *lab.State {
		st := unwantedRefusal()
		st.Steps[3].Attempt = 7 // the refusal is of an attempt before
		st.Steps[3].Err = nil
		st.Steps[3].Hints = nil
		return st
	}, 120, 50)
	said := toldOf(m)
	if strings.Contains(said, "500") {
		t.Errorf("an earlier attempt's refusal is shown:\n%s", said)
	}
	inOrder(t, said, "the step is not done", "✗ foxtrot is stored at v1beta1", "→ enter tries it again")
}

func TestACRDThatIsGoneIsSaidOnce(t *testing.T) {
	m, _ := with(t, func() *lab.State {
		st := at(6, lab.Ready, &evidence.Observation{Stored: evidence.Stored{Access: true}})
		st.Undone = []string{"step-1", "step-2", "step-3"}
		return st
	}, 120, 30)
	said := toldOf(m)
	if strings.Contains(said, "Somebody has undone") || !strings.Contains(said, "The CRD is gone, and its objects with it: r begins again, g comes back to a step.") {
		t.Errorf("it says %s", said)
	}
}

func TestTheTableSaysWhoDidIt(t *testing.T) {
	row := func(change func(*lab.State)) string {
		m, _ := with(t, func() *lab.State { st := applied(); change(st); return st }, 160, 45)
		return ansi.Strip(strings.Join(m.screen().table(), "\n"))
	}
	if got := row(func(*lab.State) {}); !strings.Contains(got, "by this step") || !strings.Contains(got, "✓ → –") || !strings.Contains(got, "– → ✓") {
		t.Errorf("applied by the lab:\n%s", got)
	}
	for name, change := range map[string]func(*lab.State){
		"by hand":        func(st *lab.State) { st.Steps[3].ByHand = true },
		"not applied":    func(st *lab.State) { st.Steps[3].Phase = lab.Ready },
		"an interrupted": func(st *lab.State) { st.Steps[3].Phase, st.Steps[3].Err = lab.Ready, errors.New("interrupted") },
	} {
		if got := row(change); strings.Contains(got, "by this step") || !strings.Contains(got, "by hand") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestARewriteIsMeasuredByItsBytes holds that requests that were answered are not taken for objects that moved.
func TestARewriteIsMeasuredByItsBytes(t *testing.T) {
	m, _ := with(t, func() *lab.State {
		st := rewriting()
		p := *st.Progress
		p.Done = 1999
		st.Progress = &p
		return st
	}, 120, 30)
	said := toldOf(m)
	for _, text := range []string{"v1beta1 1,284", "716 v1alpha1", "64 %", "answered 1,999 of 2,000", "rate 212/s", "left 3.4 s"} {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in %s", text, said)
		}
	}
}

func TestTheLogNamesWhatIsCreated(t *testing.T) {
	m, _ := with(t, func() *lab.State {
		st := before()
		x := fixtureLog[4]
		x.Warnings = []string{`unknown field "spec.weight"`}
		refusal := x
		refusal.Warnings, refusal.Status, refusal.Reason, refusal.Message = nil, 409, "AlreadyExists", "there is one"
		st.Log = []evidence.Exchange{x, refusal}
		return st
	}, 160, 45)
	for _, text := range []string{`foxtrot · ▲ unknown field "spec.weight"`, "foxtrot · AlreadyExists: there is one"} {
		if !onScreen(m, text) {
			t.Errorf("%q is not in the log", text)
		}
	}
}
