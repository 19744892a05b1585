package views

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/steps"
)

// branchable is a program at a step off which accidents branch, and the sessions of the track and of the accident.
func branchable(t *testing.T, state func() *lab.State, fails error) (m *program, track, accident *fixedSession) {
	m, track = with(t, state, 120, 30)
	accident = &fixedSession{state: last(applied())}
	m.lab.Open = func(_ context.Context, id string) (Session, error) {
		track.note("open %s", id)
		if fails != nil {
			return nil, fails
		}
		return accident, nil
	}
	return m, track, accident
}

// through presses a key and runs all that comes of it, but for what follows a session.
func (m *program) through(k string) {
	_, cmd := m.Update(press(k))
	m.settle(cmd)
}

func (m *program) settle(cmd tea.Cmd) {
	for cmd != nil {
		msg := cmd()
		if all, several := msg.(tea.BatchMsg); several {
			msg = all[len(all)-1]()
		}
		_, cmd = m.Update(msg)
		if _, opened := msg.(openedMsg); opened && m.call == nil {
			return
		}
	}
}

func asked(t *testing.T, s *fixedSession, want ...string) {
	t.Helper()
	if !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
}

func TestAnAccidentBranchesOffAndLeadsBack(t *testing.T) {
	for name, c := range map[string]struct {
		state func() *lab.State
		after []string // the step is found
	}{
		"before the step": {branching, []string{"go to step-4", "predict nothing"}},
		"after the step": {func() *lab.State {
			st := branching()
			lesson := st.Steps[3].Lesson
			st = applied()
			st.Steps[3].Lesson = lesson
			return st
		}, []string{"go to step-4", "predict nothing", "apply"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, track, accident := branchable(t, c.state, nil)
			if !onScreen(m, "w what if") {
				t.Error("the key is not offered")
			}
			m.strike("w")
			if !onScreen(m, "What if …") || !onScreen(m, "a finalizer and a converter that is gone") {
				t.Error("the accidents are not on the screen")
			}
			m.strike("down")
			m.through("enter")
			asked(t, track, "park", "open stuck-deletion")
			m.strike("esc", "esc")
			if m.branch == nil {
				t.Error("esc leaves without asking")
			}
			if !onScreen(m, "migrate ▸ what if: stuck-deletion") || !onScreen(m, "w leads back to step 4 of migrate") || !onScreen(m, "enter back to step 4") {
				t.Error("the head does not say where one is, and how to come back")
			}
			m.through("enter")
			asked(t, accident, "park", "close")
			asked(t, track, append([]string{"park", "open stuck-deletion"}, c.after...)...)
			if m.branch != nil || m.call != nil || m.session != Session(track) || onScreen(m, "what if:") {
				t.Error("the track is not back on the screen")
			}
			m.sessions.close(func() {})
			asked(t, accident, "park", "close")
		})
	}
}

func TestAnAccidentThatIsNotToBeHadIsNotBegun(t *testing.T) {
	m, track, _ := branchable(t, branching, nil)
	m.strike("w", "3", "enter")
	if len(track.asked) > 0 || len(m.dialogs) != 1 || !onScreen(m, "○ this cluster cannot call the lab") {
		t.Errorf("the session was asked for %q", track.asked)
	}
	m.strike("w")
	if len(m.dialogs) > 0 {
		t.Error("the dialog stays")
	}
}

func TestAStepWithoutAccidentsSaysSo(t *testing.T) {
	m, track, _ := branchable(t, before, nil)
	if onScreen(m, "w what if") {
		t.Error("the key is offered")
	}
	m.strike("w")
	if len(track.asked)+len(m.dialogs) > 0 || !onScreen(m, "No accident branches off this step.") {
		t.Error("it does not")
	}
}

func TestWhatFailsOnTheWayLeavesAWayOn(t *testing.T) {
	gone := errors.New("the server is gone")
	const reopen = "g goes to a step, r begins the track anew"

	m, track, _ := branchable(t, branching, gone)
	m.strike("w")
	m.through("enter")
	asked(t, track, "park", "open early-trim", "go to step-4", "predict nothing")
	if m.branch != nil || m.call != nil || !onScreen(m, "✗ what if: early-trim did not begin: the server is gone") {
		t.Error("an accident that cannot be opened leaves no clear sentence")
	}

	m, track, _ = branchable(t, branching, nil)
	track.lost = gone
	m.strike("w")
	m.through("enter")
	asked(t, track, "park", "go to step-4")
	if m.branch != nil || m.call != nil || !onScreen(m, reopen) {
		t.Error("a track that cannot be left, nor taken up, leaves no way on")
	}

	m, track, accident := branchable(t, branching, nil)
	m.strike("w")
	m.through("enter")
	track.lost = gone
	m.through("w")
	asked(t, accident, "park", "close")
	if m.branch != nil || m.session != Session(track) || !onScreen(m, "✗ come back to step 4 of migrate: the server is gone; "+reopen) {
		t.Error("a way back that fails leaves no way on")
	}
	track.asked = nil
	m.strike("g", "enter")
	asked(t, track, "go to step-4")
}

func TestAStepUnderWayIsLeftOnlyWhenAsked(t *testing.T) {
	m, track, accident := branchable(t, branching, nil)
	accident.state, accident.hold = before(), make(chan struct{})
	m.strike("w")
	m.through("enter")
	_, cmd := m.Update(press("enter"))
	done := make(chan tea.Msg)
	go func() { done <- cmd() }()
	m.strike("w")
	if !onScreen(m, "A step is under way") {
		t.Error("it is not said that a step is under way")
	}
	m.strike("esc")
	if m.branch == nil {
		t.Error("esc does not stay")
	}
	m.strike("w")
	if !onScreen(m, "Leave the accident?") {
		t.Error("nobody asks")
	}
	m.through("enter")
	m.Update(<-done)
	if !slices.Contains(accident.asked, "cancelled") || !slices.Contains(accident.asked, "close") {
		t.Errorf("the accident's session was asked for %q", accident.asked)
	}
	asked(t, track, "park", "open early-trim", "go to step-4", "predict nothing")
	if m.branch != nil || m.call != nil || onScreen(m, "cancelled") {
		t.Error("the end of what was left is told in the track")
	}
}

func TestAFaultThatIsBeingSwitchedDoesNotReachTheAccident(t *testing.T) {
	m, track, _ := branchable(t, branching, nil)
	track.holdFault = make(chan struct{})
	cmd := m.switchFault("down")
	done := make(chan tea.Msg)
	go func() { done <- cmd() }()
	m.strike("w")
	m.through("enter") // which waits for the end of the switching
	m.Update(<-done)
	if m.branch == nil || m.faulting != nil || slices.Index(track.asked, `fault "down"`) > slices.Index(track.asked, "park") {
		t.Errorf("the session was asked for %q", track.asked)
	}
}

func TestQuittingInAnAccidentClosesBoth(t *testing.T) {
	m, track, accident := branchable(t, branching, nil)
	m.sessions.all = []Session{track}
	m.strike("w")
	m.through("enter")
	m.strike("q")
	m.sessions.close(func() {})
	asked(t, track, "park", "open early-trim", "close")
	asked(t, accident, "close")
}

func TestPlainBranchesOffAndComesBack(t *testing.T) {
	for input, want := range map[string][]string{
		"w\nw 1\n\n\n2\n": {"park", "open early-trim", "go to step-4", "predict nothing", "predict nothing", "apply"}, // lists, then through it
		"w 1\nw\n\n":      {"park", "open early-trim", "go to step-4", "predict nothing", "apply"},                    // left at its first question
		"w 3\n1\n":        {"predict standard", "apply"},
		"w 9\n":           {"apply"},
	} {
		track, accident := &fixedSession{state: last(branching())}, &fixedSession{state: last(before())}
		l := plainLab(track)
		l.Tracks = fixtureLab().Tracks
		l.Open = func(_ context.Context, id string) (Session, error) {
			if id == "migrate" {
				return track, nil
			}
			track.note("open %s", id)
			return accident, nil
		}
		var out strings.Builder
		if err := Plain(t.Context(), l, "migrate", strings.NewReader(input), &out); err != nil {
			t.Error(err)
		}
		asked(t, track, append(want, "close")...)
		if strings.Contains(input, "w") && !strings.Contains(out.String(), "What if? w lists accidents") {
			t.Errorf("%q: the way is not told:\n%s", input, out.String())
		}
		if begun := slices.Contains(want, "park"); begun != strings.Contains(out.String(), "Back at step 4 of migrate: Switch the storage version") ||
			begun && !slices.Equal(accident.asked[len(accident.asked)-2:], []string{"park", "close"}) {
			t.Errorf("%q: %q\n%s", input, accident.asked, out.String())
		}
	}
}

func TestPlainGoesOnWhereAnAccidentDoesNotBegin(t *testing.T) {
	track := &fixedSession{state: last(branching())}
	l := plainLab(track)
	l.Tracks = fixtureLab().Tracks
	l.Open = func(_ context.Context, id string) (Session, error) {
		if id == "migrate" {
			return track, nil
		}
		return nil, errors.New("the server is gone")
	}
	var out strings.Builder
	if err := Plain(t.Context(), l, "migrate", strings.NewReader("w 1\n3\n"), &out); err != nil {
		t.Error(err)
	}
	asked(t, track, "park", "go to step-4", "predict nothing", "predict error", "apply", "close")
	if !strings.Contains(out.String(), "What if: early-trim did not begin: the server is gone") {
		t.Error(out.String())
	}
}

// TestAnAccidentOnALiveServer branches off each of the two long tracks to the other one, and comes back.
func TestAnAccidentOnALiveServer(t *testing.T) {
	for _, c := range []struct{ track, at, accident string }{
		{"migrate", "switch-storage", "webhook"},
		{"webhook", "one-object-two-views", "migrate"},
	} {
		t.Run(c.track, func(t *testing.T) {
			t.Parallel()
			server, err := embedded.Start(t.Context(), embedded.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close(context.Background())
			l := &Lab{Tracks: []TrackInfo{{ID: "migrate", Title: "migrate"}, {ID: "webhook", Title: "webhook"}}}
			l.Open = func(ctx context.Context, id string) (Session, error) {
				track, err := steps.Find(id)
				if err == nil && id == c.track {
					track.Steps[track.Step(c.at)].WhatIf = []string{c.accident}
				}
				if err != nil {
					return nil, err
				}
				return lab.Open(ctx, lab.Options{Track: track, Cluster: server})
			}
			m, err := newProgram(t.Context(), l, Options{Theme: "dark", Profile: colorprofile.TrueColor, Width: 160, Height: 45})
			if err != nil {
				t.Fatal(err)
			}
			defer m.sessions.close(func() {})
			m.start.live = true
			m.settle(m.open(c.track))
			m.through("1")
			said := m.current().Given
			m.settle(m.run("go there", contextual(m.session.GoTo, c.at)))

			for _, before := range []bool{true, false} { // the step is applied
				given := m.current().Options[1].ID
				if before {
					m.through("2")
				}
				m.strike("w")
				m.through("enter")
				if m.branch == nil || m.state.Track.ID != c.accident || m.current().Index != 0 {
					t.Fatalf("the accident did not begin: %s", m.sight.notice.text)
				}
				m.through("enter")
				if !done(m.current()) {
					t.Errorf("the accident's first step %s: %v", m.current().Result, m.current().Err)
				}
				m.through("w")
				now := m.current()
				if m.branch != nil || m.state.Track.ID != c.track || now.ID != c.at || now.Given != given || done(now) == before || m.state.Steps[0].Given != said || m.state.Trouble != nil {
					t.Fatalf("back at %s of %s, given %q, and %q at first; done: %t; %s, %v", now.ID, m.state.Track.ID, now.Given, m.state.Steps[0].Given, done(now), m.sight.notice.text, m.state.Trouble)
				}
				if before {
					m.through("enter")
				}
				if !done(m.current()) {
					t.Errorf("the step %s: %v", m.current().Result, m.current().Err)
				}
			}
		})
	}
}
