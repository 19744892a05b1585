package views

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

func press(name string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "left": tea.KeyLeft, "right": tea.KeyRight,
		"up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp}
	switch {
	case name == "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case strings.HasPrefix(name, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl}
	case special[name] != 0:
		return tea.KeyPressMsg{Code: special[name]}
	}
	return tea.KeyPressMsg{Code: rune(name[0]), Text: name}
}

// strike presses keys one after the other, and runs what they ask for.
func (m *program) strike(keys ...string) {
	for _, k := range keys {
		_, cmd := m.Update(press(k))
		if cmd == nil {
			continue
		}
		if msg := cmd(); msg != nil {
			m.Update(msg)
		}
	}
}

// onScreen says whether a text stands on the screen.
func onScreen(m *program, text string) bool {
	return strings.Contains(ansi.Strip(strings.Join(m.lines(), "\n")), text)
}

func with(t *testing.T, state func() *lab.State, w, h int) (*program, *fixedSession) {
	m := show(t, fixture{state: state}, "dark", w, h)
	return m, m.session.(*fixedSession)
}

func TestPredictApplyGoOn(t *testing.T) {
	m, s := with(t, before, 160, 45)
	m.strike("1", "enter")
	if !onScreen(m, "you said 1, and so it is") {
		t.Error("the judgement is not on the screen")
	}
	m.strike("enter")
	if want := []string{"predict standard", "apply", "next"}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
	if !onScreen(m, "5 of 11") {
		t.Error("the next step is not on the screen")
	}
}

func TestArrowsChooseWhileTheQuestionHasTheFocus(t *testing.T) {
	m, s := with(t, before, 160, 45)
	m.strike("down", "tab", "down", "up", "shift+tab", "up")
	if want := []string{"predict error", "predict nothing"}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
}

func TestNothingIsAppliedWhileLookingBack(t *testing.T) {
	m, s := with(t, applied, 160, 45)
	m.strike("left")
	if !onScreen(m, "looking back: step 3 as it was") {
		t.Error("there is no sign of looking back")
	}
	m.strike("1", "enter")
	if len(s.asked) > 0 || onScreen(m, "looking back") {
		t.Errorf("the session was asked for %q", s.asked)
	}
	m.strike("left", "left", "right", "right")
	if onScreen(m, "looking back") {
		t.Error("right does not lead back to the current step")
	}
	m.strike("left", "left", "left", "left", "left")
	if !onScreen(m, "step 1 as it was") {
		t.Error("the first step is not the last to look back at")
	}
}

func TestEscapeCancelsWhatGoesOn(t *testing.T) {
	m, s := with(t, before, 120, 30)
	s.hold = make(chan struct{})
	_, cmd := m.Update(press("enter"))
	done := make(chan tea.Msg)
	go func() { done <- cmd() }()
	m.strike("enter", "1") // neither a second time, nor too late
	m.Update(press("esc"))
	m.Update(<-done)
	if want := []string{"apply", "cancelled"}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
	if m.call != nil || m.interrupted || !onScreen(m, "cancelled") {
		t.Error("the call is not over")
	}
}

func TestCtrlCQuitsAlsoWhileAStepIsApplied(t *testing.T) {
	m, s := with(t, before, 120, 30)
	s.hold = make(chan struct{})
	m.Update(press("enter"))
	_, cmd := m.Update(press("ctrl+c"))
	if _, quits := cmd().(tea.QuitMsg); !quits || !m.interrupted {
		t.Error("ctrl+c does not quit")
	}
}

func TestDialogsTakeTheKeys(t *testing.T) {
	m, s := with(t, before, 120, 30)
	m.strike("r")
	if !onScreen(m, "Reset the track?") {
		t.Error("nobody asks before a reset")
	}
	m.strike("esc", "r", "enter")
	if !onScreen(m, "✗ reset the cluster: no answer") {
		t.Error("the error of a reset is not on the screen")
	}
	m.strike("g", "down", "enter", "?", "q")
	if want := []string{"reset", "go to step-5"}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
	if len(m.dialogs) > 0 {
		t.Error("a dialog is left")
	}
}

func TestByHandCopiesTheCommandsWhole(t *testing.T) {
	m, _ := with(t, before, 80, 24)
	m.strike("K")
	if !onScreen(m, "By hand step 4") || !onScreen(m, "waiting for: storedVersions is [v1alpha1 v1beta1]") {
		t.Error("the dialog does not say what is waited for")
	}
	_, cmd := m.Update(press("c"))
	copied := strings.Join(script(m.state, m.current()), "\n") + "\n"
	if cmd() != tea.SetClipboard(copied)() || !strings.Contains(copied, m.current().Actions[0].Kubectl[1]) {
		t.Error("what is copied is not what is to be run")
	}
}

func TestByHandWritesAFileThatOthersCannotRead(t *testing.T) {
	for _, z := range [][2]int{{80, 24}, {160, 45}} {
		m, _ := with(t, before, z[0], z[1])
		folder := t.TempDir() + "/" + strings.Repeat("a-long-name/", 6)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		m.state.Kubeconfig = folder + "kubeconfig"
		m.strike("K", "o")
		path := folder + "step-4-step-4.sh"
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
		if box := strings.Join(m.dialogs[0].draw(m, m.w, m.h), "\n"); !strings.Contains(strings.NewReplacer("┃", "", "\n", "", " ", "").Replace(ansi.Strip(box)), path) {
			t.Errorf("the dialog does not show the path whole:\n%s", ansi.Strip(box))
		}
	}
}

func TestALongCommandIsReadableWhole(t *testing.T) {
	const line = `  patch=$(kubectl get widgets $w -o go-template='[{{range $i, $m := .metadata.managedFields}}{"op":"replace","path":"/metadata/managedFields/{{$i}}/apiVersion"}{{end}}]')`
	for _, w := range []int{30, 66, 100, 200} {
		var joined string
		for i, l := range goOnBelow(line, w) {
			if width(l) > w {
				t.Errorf("at %d a line of %d", w, width(l))
			}
			if i > 0 {
				pad, rest, ok := strings.Cut(l, goesOn)
				if !ok || strings.Trim(pad, " ") != "" {
					t.Errorf("at %d no sign that it goes on: %q", w, l)
				}
				l = rest
			}
			joined += l
		}
		if joined != line {
			t.Errorf("at %d it reads %q", w, joined)
		}
	}
	m, _ := with(t, func() *lab.State {
		st := before()
		st.Steps[3].Actions[0].Kubectl = []string{"for w in a b; do\n" + line + "\ndone"}
		return st
	}, 80, 24)
	m.strike("K")
	_, cmd := m.Update(press("c"))
	if want := tea.SetClipboard(strings.Join(script(m.state, m.current()), "\n") + "\n")(); cmd() != want || !strings.Contains(fmt.Sprint(want), line) {
		t.Error("what is copied is not the command")
	}
}

func TestTheDialogByHandSaysHowTheStepEnds(t *testing.T) {
	m, _ := with(t, applied, 120, 30)
	m.strike("K")
	if !onScreen(m, "✓ The step is done. esc shows what happened.") {
		t.Error("of a step that is done it does not say so")
	}
	m, _ = with(t, func() *lab.State { return at(10, lab.Ready, sixNew) }, 120, 30)
	m.strike("K")
	if onScreen(m, "by itself as soon") || !onScreen(m, "enter does it") {
		t.Error("it promises that the last step completes by itself")
	}
}

func TestQuittingAsksWhileAStepIsAtWork(t *testing.T) {
	for name, c := range map[string]struct {
		state func() *lab.State
		asks  string
	}{
		"ready": {before, ""}, "applied": {applied, ""}, "rewriting": {rewriting, "a rewrite is going on: q again quits, esc stays"},
		"paused":  {paused, "a rewrite is going on: q again quits, esc stays"},
		"running": {func() *lab.State { return at(3, lab.Running, fiveOld) }, "the step is being applied: q again quits, esc stays"},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := with(t, c.state, 120, 30)
			_, cmd := m.Update(press("q"))
			if c.asks == "" {
				if cmd == nil {
					t.Error("it does not quit")
				}
				return
			}
			if cmd != nil || !onScreen(m, c.asks) {
				t.Fatal("it does not ask")
			}
			if m.strike("esc"); onScreen(m, "q again quits") || len(s.asked) > 0 {
				t.Errorf("esc does more than stay: %q", s.asked)
			}
			m.strike("q", "j")
			if _, cmd = m.Update(press("q")); cmd != nil {
				t.Error("another key between is not taken for no")
			}
			if _, cmd = m.Update(press("q")); cmd == nil {
				t.Error("q again does not quit")
			}
		})
	}
}

func TestNumbersChooseAmongTheSteps(t *testing.T) {
	m, s := with(t, before, 120, 30)
	m.strike("g", "2", "enter", "g", "9", "down", "enter")
	if want := []string{"go to step-2", "go to step-10"}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
}

func TestProseIsZoomedWhereItHasTheFocus(t *testing.T) {
	for _, z := range [][2]int{{80, 24}, {120, 30}, {160, 45}} {
		m, s := with(t, before, z[0], z[1])
		m.strike("z")
		for _, text := range append([]string{"+ foxtrot  at v1beta1", "nobody touches their bytes", m.current().Question[:20]}, optionTexts(m.current())...) {
			if !onScreen(m, text) {
				t.Errorf("%v: %q is not on the screen", z, text)
			}
		}
		if onScreen(m, "apiVersion: ") || onScreen(m, "objects stored in etcd") {
			t.Errorf("%v: the panes are in sight", z)
		}
		m.strike("3", "tab")
		if !onScreen(m, "apiVersion: ") || !slices.Equal(s.asked, []string{"predict error"}) {
			t.Errorf("%v: tab does not lead to a pane, or the question was not answered: %q", z, s.asked)
		}
		m.strike("esc")
		if m.sight.zoom != noZoom {
			t.Errorf("%v: esc does not lead back", z)
		}
	}
}

func TestWhatEnterAppliesIsNeverOutOfReach(t *testing.T) {
	for _, z := range [][2]int{{80, 24}, {100, 28}, {120, 30}, {160, 45}} {
		m, _ := with(t, func() *lab.State {
			st := before()
			st.Steps[3].Briefing = strings.Repeat("Word after word. ", 40)
			return st
		}, z[0], z[1])
		for range 60 {
			if onScreen(m, "foxtrot  at v1beta1") {
				break
			}
			if !onScreen(m, "j ↓") {
				t.Errorf("%v: nothing says that there is more", z)
				break
			}
			m.strike("j")
		}
		if !onScreen(m, "foxtrot  at v1beta1") {
			t.Errorf("%v: the changes cannot be reached", z)
		}
	}
}

func TestPauseOnlyWhileARewriteGoesOn(t *testing.T) {
	m, s := with(t, before, 120, 30)
	m.strike("p")
	m, s2 := with(t, rewriting, 120, 30)
	m.strike("p")
	m3, s3 := with(t, paused, 120, 30)
	m3.strike("p")
	if len(s.asked) != 0 || !slices.Equal(s2.asked, []string{"pause true"}) || !slices.Equal(s3.asked, []string{"pause false"}) {
		t.Errorf("%q %q %q", s.asked, s2.asked, s3.asked)
	}
}

// TestTheRewriterIsChosenOnlyWhereThereIsAChoice: the key is offered, and works, where the cluster can and the step rewrites.
func TestTheRewriterIsChosenOnlyWhereThereIsAChoice(t *testing.T) {
	choice := func(migrates, rewrites bool) func() *lab.State {
		return func() *lab.State {
			st := before()
			st.Migrates, st.RewriteWith = migrates, lesson.WithPatch
			step := *st.Steps[st.Current]
			of := lesson.Step{ID: step.ID}
			if step.Lesson != nil {
				of = *step.Lesson
			}
			of.Rewrites = rewrites
			step.Lesson = &of
			st.Steps[st.Current] = &step
			return st
		}
	}
	for _, c := range []struct{ migrates, rewrites bool }{{false, true}, {true, false}} {
		m, s := with(t, choice(c.migrates, c.rewrites), 160, 45)
		m.strike("v")
		if len(s.asked) > 0 || onScreen(m, "rewrite with: ") {
			t.Errorf("%+v: it was offered, and %q asked", c, s.asked)
		}
	}
	m, s := with(t, choice(true, true), 160, 45)
	if !onScreen(m, "v rewrite with: patch") {
		t.Error("the key is not offered")
	}
	m.strike("v")
	if !slices.Contains(s.asked, "rewrite with svm") {
		t.Errorf("it asked %q", s.asked)
	}
	m.strike("?")
	if !onScreen(m, "rewrite with ") {
		t.Error("the help does not name the key")
	}
}

// TestTheStartLearnsWhatTheClusterLacks: once it is live, a track that it cannot carry says why, and does not begin.
func TestTheStartLearnsWhatTheClusterLacks(t *testing.T) {
	l := fixtureLab()
	id := l.Tracks[0].ID
	l.Unavailable = func(context.Context) (map[string]string, error) {
		return map[string]string{id: "needs what is not there"}, nil
	}
	m, err := newProgram(t.Context(), l, Options{Theme: "dark", Width: 120, Height: 30})
	if err != nil {
		t.Fatal(err)
	}
	m.start.chosen = 1
	if onScreen(m, "needs what is not there") {
		t.Error("it was known before it was asked")
	}
	m.Update(m.live()())
	if !onScreen(m, "○ needs what is not there") {
		t.Error("it is not said")
	}
	if l.Tracks[0].Unavailable != "" {
		t.Error("the caller's list was changed")
	}
	m.start.chosen = 0
	m.strike("enter")
	if m.call != nil || !onScreen(m, "needs what is not there") {
		t.Error("it began")
	}
}

func TestALateReadingHidesNoNewerOne(t *testing.T) {
	m, s := with(t, before, 120, 30)
	late := m.reader.read()
	s.change(func(st *lab.State) { st.Doing = "newer" })
	m.Update(stateMsg{reading: m.reader.read()})
	m.Update(calledMsg{reading: late})
	if m.state.Doing != "newer" {
		t.Error("an older state is shown")
	}
}

func TestAReportSaysWhereItIs(t *testing.T) {
	m, _ := with(t, applied, 120, 30)
	m.strike("e")
	if !onScreen(m, "the report → report.md") {
		t.Error("the screen does not say where the report is")
	}
}

func TestAnotherObjectIsShownAndHeld(t *testing.T) {
	m, s := with(t, before, 120, 30)
	m.strike("]")
	if !onScreen(m, "name: bravo") || !slices.Equal(s.asked, []string{"select crdlab/bravo"}) {
		t.Errorf("%q", s.asked)
	}
	m.strike("[", "[")
	if !onScreen(m, "name: echo") {
		t.Error("before the first is not the last")
	}
}

func TestTabsGoRound(t *testing.T) {
	m, _ := with(t, applied, 80, 24)
	var kinds []focus
	for range len(m.screen().stops()) {
		m.strike("tab")
		kinds = append(kinds, m.sight.focus)
	}
	want := []focus{{onPane, 0}, {onPane, 1}, {onPane, 2}, {onBoth, 0}, {onLog, 0}, {onProse, 0}}
	if !slices.Equal(kinds, want) {
		t.Errorf("tab went through %v", kinds)
	}
}

func TestWhatGoesOnCanBeReached(t *testing.T) {
	m, _ := with(t, func() *lab.State {
		st := applied()
		st.Steps[3].Explanation = strings.Repeat("Word after word. ", 60) + "The end."
		return st
	}, 120, 30)
	if onScreen(m, "The end.") {
		t.Fatal("the text is too short for this test")
	}
	for range 40 {
		m.strike("j")
	}
	if !onScreen(m, "The end.") {
		t.Error("the end cannot be reached")
	}
	at := m.sight.proseScroll
	m.strike("k")
	if m.sight.proseScroll != at-1 {
		t.Error("the scroll went beyond the end")
	}
}

func TestTheQuestionStaysInSight(t *testing.T) {
	for _, z := range [][2]int{{80, 24}, {100, 28}, {120, 30}, {160, 45}} {
		m, _ := with(t, func() *lab.State {
			st := before()
			st.Steps[3].Briefing = strings.Repeat("Word after word. ", 60)
			return st
		}, z[0], z[1])
		for _, o := range m.current().Options {
			if !onScreen(m, o.Text) {
				t.Errorf("%v: the option %q is out of sight", z, o.Text)
			}
		}
	}
}

func TestTheStartOffersOnlyWhatThereIs(t *testing.T) {
	m := show(t, fixture{}, "dark", 160, 45)
	if !onScreen(m, "tab next group") || !onScreen(m, "↑ ↓ choose") {
		t.Error("the groups cannot be reached")
	}
	const summary = "a summary that is longer than the column of the tracks, and is to be read to its end"
	for _, z := range [][2]int{{160, 45}, {120, 30}, {80, 24}} {
		l := fixtureLab()
		l.Tracks = l.Tracks[:1]
		l.Tracks[0].Summary = summary
		m, err := newProgram(t.Context(), l, Options{Width: z[0], Height: z[1]})
		if err != nil {
			t.Fatal(err)
		}
		if onScreen(m, "next group") || onScreen(m, "choose") {
			t.Errorf("%v: it offers a choice where there is one track", z)
		}
		if !onScreen(m, "to its end") || !onScreen(m, "How a step goes") && z[1] > 24 {
			t.Errorf("%v: the summary is cut, or nothing says how a step goes", z)
		}
	}
}

func TestTheHelpCountsTheOptions(t *testing.T) {
	m, _ := with(t, before, 120, 30)
	m.strike("?")
	if !onScreen(m, "1–3        predict") {
		t.Error("it does not")
	}
}

func TestStartQueuesATrackUntilTheClusterIsLive(t *testing.T) {
	s := &fixedSession{state: before()}
	l := fixtureLab()
	phases := make(chan Phase)
	l.Phases = phases
	l.Open = func(_ context.Context, track string) (Session, error) { s.note("open %s", track); return s, nil }
	m, err := newProgram(t.Context(), l, Options{Width: 120, Height: 30})
	if err != nil {
		t.Fatal(err)
	}
	m.strike("enter")
	if len(s.asked) > 0 || !onScreen(m, "migrate begins as soon as the cluster is live") {
		t.Error("the track does not wait for the cluster")
	}
	m.Update(phaseMsg{Phase{Name: "etcd", Done: true}, true})
	_, cmd := m.Update(phaseMsg{open: false})
	m.Update(cmd())
	if !slices.Equal(s.asked, []string{"open migrate"}) || !onScreen(m, "4 of 11") {
		t.Errorf("%q", s.asked)
	}
}

func TestATrackThatWasLeftGoesOn(t *testing.T) {
	for key, want := range map[string]struct{ asked, said string }{
		"enter": {"go on migrate", "migrate goes on at step 4 as soon as the cluster is live"},
		"n":     {"open migrate", "migrate begins as soon as the cluster is live"},
	} {
		s := &fixedSession{state: before()}
		l := fixtureLab()
		l.Phases = make(chan Phase)
		l.Tracks[0].Left, l.Notice = Left{Step: 4}, "There is something to be said."
		l.Tracks[2].Left, l.Chosen = Left{Step: 2}, l.Tracks[2].ID
		l.Open = func(_ context.Context, track string) (Session, error) { s.note("open %s", track); return s, nil }
		l.GoOn = func(_ context.Context, track string) (Session, error) { s.note("go on %s", track); return s, nil }
		m, err := newProgram(t.Context(), l, Options{Width: 120, Height: 30})
		if err != nil {
			t.Fatal(err)
		}
		if !onScreen(m, l.Notice) || !onScreen(m, "enter go on at step 2") || !onScreen(m, "▸ "+l.Chosen) {
			t.Error("the track that was taken last is not offered")
		}
		m.strike("tab", "tab", "up", "up", "up")
		if !onScreen(m, "enter go on at step 4") || !onScreen(m, "n begin anew") || !onScreen(m, "You left at step 4 of 11, Switch the storage version.") {
			t.Error("where it was left is not on the screen")
		}
		m.strike(key)
		if !onScreen(m, want.said) {
			t.Errorf("%s: it does not say that %s", key, want.said)
		}
		_, cmd := m.Update(phaseMsg{open: false})
		if key == "enter" && !onScreen(m, "◐ rebuilding migrate up to step 4") {
			t.Error("nothing says that it is rebuilt")
		}
		m.Update(cmd())
		if !slices.Equal(s.asked, []string{want.asked}) || !onScreen(m, "4 of 11") {
			t.Errorf("%s: %q", key, s.asked)
		}
	}
}

func TestATrackThatCannotBeTakenSaysWhy(t *testing.T) {
	m := show(t, fixture{then: func(m *program) { m.start.live = true }}, "dark", 120, 30)
	m.strike("down", "enter")
	if m.call != nil || !onScreen(m, "✗ webhook: this cluster cannot call the lab") {
		t.Error("the reason is not on the screen")
	}
}

// TestKeysHaveOneMeaning holds that no key of the session's screen is bound twice, but for those that are meant to be.
func TestKeysHaveOneMeaning(t *testing.T) {
	k := newKeyMap()
	both := []string{"up", "down"} // they choose where there is a choice, and scroll elsewhere
	used := map[string]string{}
	for _, b := range []key.Binding{k.Apply, k.Predict, k.Choose, k.Back, k.Forward, k.GoTo, k.Reset, k.ByHand, k.WhatIf, k.Faults, k.Pause, k.Escape, k.NextPane,
		k.PrevPane, k.PrevObject, k.NextObject, k.Managers, k.Zoom, k.Up, k.Down, k.PageUp, k.PageDown, k.Export, k.Help, k.Suspend, k.Quit, k.Interrupt} {
		for _, name := range b.Keys() {
			if other, twice := used[name]; twice && !slices.Contains(both, name) {
				t.Errorf("%s is %q and %q", name, other, b.Help().Desc)
			}
			used[name] = b.Help().Desc
		}
	}
}

// TestTheHelpNamesEveryKey holds that what can be pressed can be looked up.
func TestTheHelpNamesEveryKey(t *testing.T) {
	m, _ := with(t, func() *lab.State {
		st := branching()
		st.Migrates, st.Webhook = true, true // a key is named only where it can do something
		return st
	}, 80, 24)
	m.strike("?")
	for _, g := range m.keys.groups() {
		for _, b := range g.keys {
			if !onScreen(m, b.Help().Desc) {
				t.Errorf("the help does not say %q", b.Help().Desc)
			}
		}
	}
}

// TestManyChangesAreFewFrames changes a state a thousand times and counts how often it is shown.
func TestManyChangesAreFewFrames(t *testing.T) {
	s := &fixedSession{state: rewriting()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	shown := make(chan int)
	last := make(chan *lab.State, 1)
	changed := s.Changed()
	r := &reader{session: s}
	go func() {
		n := 0
		for {
			msg, ok := follow(ctx, r, changed, frameTime)().(stateMsg)
			if !ok {
				shown <- n
				return
			}
			n++
			changed = msg.changed
			if msg.state.Progress.Finished {
				last <- msg.state
				shown <- n
				return
			}
		}
	}()
	for i := range 1000 {
		s.change(func(st *lab.State) { p := *st.Progress; p.Done = i; st.Progress = &p })
	}
	s.change(func(st *lab.State) { p := *st.Progress; p.Finished = true; st.Progress = &p })
	if n := <-shown; n > int(time.Since(began)/frameTime)+2 {
		t.Errorf("%d frames in %s", n, time.Since(began))
	}
	if (<-last).Progress.Done != 999 {
		t.Error("the last change was missed")
	}
}

// TestANewStepLeadsTheEye holds where the focus is in each phase.
func TestANewStepLeadsTheEye(t *testing.T) {
	m, s := with(t, before, 160, 45)
	if m.sight.focus.kind != onProse {
		t.Error("before a step the question has not the focus")
	}
	m.strike("enter")
	if m.sight.focus != (focus{onPane, 1}) {
		t.Errorf("after a step the focus is on %v", m.sight.focus)
	}
	m.strike("tab", "tab")
	s.change(func(st *lab.State) { st.Log = append([]evidence.Exchange(nil), st.Log...) })
	m.show(s.State())
	if m.sight.focus.kind != onLog {
		t.Error("a change of the state moved the focus")
	}
	s.change(func(st *lab.State) { st.Steps[3].Result = lesson.Failed; st.Steps[3].Phase = lab.Running })
	m.show(s.State())
	s.change(func(st *lab.State) { st.Steps[3].Phase = lab.Applied })
	m.show(s.State())
	if m.sight.focus.kind != onProse {
		t.Error("where a step failed the failure has not the focus")
	}
}
