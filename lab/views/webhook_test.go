package views

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
)

func TestFaultsAreSwitchedAndHealed(t *testing.T) {
	m, s := with(t, reviewed, 120, 30)
	m.strike("f", "down", "enter")
	if !onScreen(m, "✗ wrong-ca is on") {
		t.Errorf("not on:\n%s", strings.Join(m.lines(), "\n"))
	}
	m.strike("esc")
	if !onScreen(m, "✗ fault: wrong-ca  f heals") {
		t.Error("the screen does not say that a fault is on")
	}
	m.strike("f", "enter", "esc") // it opens at the one that is on
	if onScreen(m, "✗ fault") {
		t.Error("it is not healed")
	}
	m.strike("f", "space", "down", "space", "0")
	if want := []string{`fault "wrong-ca"`, `fault ""`, `fault "down"`, `fault "wrong-ca"`, `fault ""`}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
}

func TestFaultsCanBeSwitchedWhileAStepHangs(t *testing.T) {
	m, s := with(t, reviewed, 80, 24)
	s.change(func(st *lab.State) { st.Steps[st.Current].Phase = lab.Ready })
	m.show(s.State())
	s.hold = make(chan struct{})
	_, applying := m.Update(press("enter"))
	applied := make(chan tea.Msg, 1)
	go func() { applied <- applying() }()
	m.strike("f", "enter")
	if m.state.Fault.ID != "down" || !onScreen(m, "✗ down is on") {
		t.Errorf("the fault is %q", m.state.Fault.ID)
	}
	m.strike("0", "esc", "esc") // the second one cancels the step
	m.Update(<-applied)
	if m.state.Fault.ID != "" || m.call != nil {
		t.Errorf("the fault is %q, and goes on: %v", m.state.Fault.ID, m.call)
	}
}

func TestAFaultThatIsNotSwitchedGivesWayToTheNext(t *testing.T) {
	m, s := with(t, reviewed, 120, 30)
	s.holdFault = make(chan struct{})
	m.Update(press("f"))
	_, first := m.Update(press("enter"))
	firstDone := make(chan tea.Msg, 1)
	go func() { firstDone <- first() }()
	if !onScreen(m, "switching on down") {
		t.Error("nothing says that it is under way")
	}
	m.Update(press("down"))
	_, second := m.Update(press("enter"))
	secondDone := make(chan tea.Msg, 1)
	go func() { secondDone <- second() }()
	m.Update(<-firstDone) // it was cancelled
	close(s.holdFault)
	m.Update(<-secondDone)
	if m.state.Fault.ID != "wrong-ca" || m.faulting != nil {
		t.Errorf("the fault is %q", m.state.Fault.ID)
	}
}

// drain runs a command and all that come of it, until nothing is left.
func (m *program) drain(cmd tea.Cmd) {
	done, pending := make(chan tea.Msg), 0
	start := func(c tea.Cmd) {
		if c != nil {
			pending++
			go func() { done <- c() }()
		}
	}
	for start(cmd); pending > 0; pending-- {
		switch msg := (<-done).(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				start(c)
			}
		default:
			_, next := m.Update(msg)
			start(next)
		}
	}
}

func TestEveryOperationIsTriedUnderAFault(t *testing.T) {
	m, s := with(t, reviewed, 120, 30)
	m.strike("f")
	_, cmd := m.Update(press("t"))
	if m.call == nil || !onScreen(m, "trying") {
		t.Error("nothing says that it goes on")
	}
	m.drain(cmd)
	if m.call != nil || !m.tabled("down") {
		t.Fatalf("%d cells of down, and still %v", len(m.tried["down"]), m.call)
	}
	for _, want := range []string{"LIST cached", "▲   no answer in 3 s", "500 dial tcp", "3 reviews", "People see it first"} {
		if !onScreen(m, want) {
			t.Errorf("not on the screen: %s\n%s", want, strings.Join(m.lines(), "\n"))
		}
	}
	m.strike("right", "left", "t") // it was tried
	_, cmd = m.Update(press("right"))
	if cmd != nil || !onScreen(m, "not tried yet") {
		t.Error("the next fault is not shown as not yet tried")
	}
	_, cmd = m.Update(press("a"))
	m.drain(cmd)
	for _, f := range bench.Faults() {
		if !m.tabled(bench.ID(f)) {
			t.Errorf("%s was not tried", bench.ID(f))
		}
	}
	if len(s.asked) != 2 || strings.Contains(s.asked[1], `"down"`) {
		t.Errorf("the session was asked for %q", s.asked)
	}
}

func TestNoFaultIsTriedWhileAStepIsAtWork(t *testing.T) {
	m, s := with(t, rewritingWithWebhook, 80, 24)
	m.strike("f", "t")
	if len(s.asked) > 0 || !onScreen(m, "still at work") {
		t.Errorf("the session was asked for %q", s.asked)
	}
}

func TestATrackWithoutAWebhookSaysSo(t *testing.T) {
	m, s := with(t, before, 80, 24)
	m.strike("f")
	if !onScreen(m, "has no webhook") || len(m.dialogs) > 0 || len(s.asked) > 0 {
		t.Error("f does something else than to say that there is no webhook")
	}
}

func TestTheChosenReviewStaysWhenOthersCome(t *testing.T) {
	m, s := with(t, reviewed, 120, 30)
	m.sight.focus = focus{kind: onReviews}
	m.strike("z", "k", "k", "k", "k")
	if !onScreen(m, "▸▲ v1alpha1 → v1beta1") && !onScreen(m, "▸✓ v1alpha1 → v1beta1   bravo") {
		t.Fatalf("bravo's review is not chosen:\n%s", strings.Join(m.lines(), "\n"))
	}
	for _, want := range []string{"over 58 ms", "∅   displayName · not in the request", "+   displayName: Front door", "-   label: Front door"} {
		if !onScreen(m, want) {
			t.Errorf("not on the screen: %s", want)
		}
	}
	s.change(func(st *lab.State) { st.Conversions = append(slices.Clone(st.Conversions), review(7, "golf", 1)) })
	m.show(s.State())
	if all := m.screen().reviews(); all[m.screen().reviewAt(all)].Names[0] != "crdlab/bravo" {
		t.Error("another review is chosen")
	}
	m.strike("j", "j", "j", "j", "j", "j", "j")
	if m.sight.review != 0 {
		t.Error("the newest is not followed")
	}
}

func TestAnAnswerOfManyObjectsIsScrolled(t *testing.T) {
	m, s := with(t, reviewed, 80, 24)
	c := review(7, "many", 1)
	object := `{"apiVersion":"lab.example.com/v1alpha1","kind":"Widget","metadata":{"name":"w"},"spec":{"replicas":1}}`
	c.Objects, c.Request = 9, `{"request":{"objects":[`+strings.Repeat(object+",", 8)+object+`]}}`
	c.Response = strings.Replace(strings.Replace(c.Request, "request", "response", 1), "objects", "convertedObjects", 1)
	s.change(func(st *lab.State) { st.Conversions = []evidence.Conversion{c} })
	m.show(s.State())
	focusReviews(m)
	m.strike("z")
	if !onScreen(m, "pgdn ↓") {
		t.Fatal("nothing says that there is more")
	}
	for range 20 {
		m.strike("pgdown")
	}
	if onScreen(m, "pgdn ↓") || !onScreen(m, "pgup ↑") {
		t.Error("the end is not reached")
	}
	at := m.sight.sidesScroll
	m.strike("pgup")
	if m.sight.sidesScroll >= at {
		t.Error("it cannot be scrolled back")
	}
}

func TestTheGistOfAMessageIsWhatWentWrong(t *testing.T) {
	for message, want := range map[string]string{
		`Internal error occurred: StorageError: corrupt object, revision=10: conversion webhook for lab.example.com/v1alpha1, Kind=Widget failed: Post "https://a.b.svc:443/convert?timeout=30s": dial tcp 127.0.0.1:4: connection reset`: "… conversion webhook failed: dial tcp 127.0.0.1:4: connection reset",
		`object not decodable revision=10: conversion webhook for lab.example.com/v1alpha1, Kind=Widget returned invalid object: must have the same name`:                                                                                 "… conversion webhook returned invalid object: must have the same name",
		"conversion webhook for g/v, Kind=W failed: the webhook cannot convert today":                                                                                                                                                     "… conversion webhook failed: the webhook cannot convert today",
		"status.storedVersions[0]: missing from spec.versions": "status.storedVersions[0]: missing from spec.versions",
	} {
		if got := gist(message); got != want {
			t.Errorf("%q\nis not %q", got, want)
		}
	}
}

func TestPlainTellsReviews(t *testing.T) {
	st := last(reviewed())
	step := st.Steps[3]
	step.Actions = []lab.Action{{ID: "switch", Exchanges: []int{0, 1}, Counted: true, Reviews: 12}}
	step.Conversions = st.Conversions
	var out strings.Builder
	if err := Plain(t.Context(), plainLab(&fixedSession{state: st}), "webhook", strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	told := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"switch: 12 reviews by the webhook", "review: bravo from v1alpha1 to v1beta1: slow, 3.0 s; the API server traces calls over 58 ms",
		"review: charlie from v1alpha1 to v1beta1: Failed: the webhook cannot convert today", "review: echo from v1alpha1 to v1beta1: HTTP 500"} {
		if !strings.Contains(told, want) {
			t.Errorf("not told: %s\n%s", want, out.String())
		}
	}
	if strings.Contains(told, "review: alpha") {
		t.Error("what went well is told at length")
	}
}
