package views

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
)

// unseen plays a track without a terminal.
func unseen(ctx context.Context, s Session, play Play, w, h int) error {
	l := &Lab{Start: func(context.Context) error { return nil }, Open: func(context.Context, string) (Session, error) { return s, nil }}
	play.Unseen = true
	return Run(ctx, l, Options{Track: "migrate", Play: &play, Theme: "dark", Profile: colorprofile.TrueColor, Width: w, Height: h})
}

// open is a step of which nothing is predicted yet.
func open() *lab.State {
	st := before()
	st.Steps[st.Current].Given = ""
	return st
}

func TestAPlayDoesOneThingAtATime(t *testing.T) {
	s := &fixedSession{state: open()}
	if err := unseen(t.Context(), s, Play{Pace: time.Second, Until: "step-5"}, 160, 45); err != nil {
		t.Fatal(err)
	}
	if want := []string{"predict standard", "apply", "next", "apply", "close"}; !slices.Equal(s.asked, want) {
		t.Errorf("the session was asked for %q, not %q", s.asked, want)
	}
}

func TestAPlayBeginsWhereItIsTold(t *testing.T) {
	s := &fixedSession{state: open()}
	if err := unseen(t.Context(), s, Play{Pace: time.Second, From: "step-2", Until: "step-4"}, 160, 45); err != nil {
		t.Fatal(err)
	}
	if want := "go to step-2"; s.asked[0] != want {
		t.Errorf("the session was asked for %q first, not %q", s.asked[0], want)
	}
}

func TestAPlayEndsAtAStepThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		state  func() *lab.State
		failed bool
		says   string
	}{
		"a check":   {unwantedRefusal, true, "foxtrot is stored at v1beta1"},
		"no answer": {func() *lab.State { return unanswered(open()) }, false, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			st := c.state()
			if c.failed {
				st.Steps[st.Current].Err = nil
			}
			err := unseen(t.Context(), &fixedSession{state: st}, Play{Pace: time.Second}, 160, 45)
			if err == nil || errors.Is(err, ErrStepFailed) != c.failed || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// unanswered is a step that could not be brought to its end.
func unanswered(st *lab.State) *lab.State {
	st.Steps[st.Current].Err = errors.New("no answer")
	return st
}

// answering is a session whose step comes to a result that is made up as well.
type answering struct {
	*fixedSession
	result *lab.State
}

func (s answering) Apply(context.Context) error {
	s.change(func(st *lab.State) { *st = *s.result })
	return nil
}

// TestAPlayLeavesTheTimeToReadResults looks at the clock of the recording, for nobody waits.
func TestAPlayLeavesTheTimeToReadResults(t *testing.T) {
	long := func() *lab.State {
		st := applied()
		s := st.Steps[st.Current]
		s.Explanation += "\n"
		for day := range 20 {
			s.Explanation += fmt.Sprintf("\nThe object of day %d has tier, for it was created afterwards.", day)
		}
		return st
	}
	for _, c := range []struct {
		name   string
		result func() *lab.State
	}{{"explained", applied}, {"explained at length", long}, {"wrong", wrong}, {"refused", refused}, {"refused more than once", severalRefused}} {
		for _, z := range [][2]int{{160, 45}, {120, 30}, {80, 24}} {
			t.Run(fmt.Sprintf("%s %dx%d", c.name, z[0], z[1]), func(t *testing.T) {
				result, asked := c.result(), c.result()
				step := asked.Steps[asked.Current]
				step.Phase, step.Given, step.Answer, step.Took, step.Checks, step.Exchanges, step.Actions = lab.Ready, "", "", 0, nil, nil, nil
				given := step.Options[0].ID
				of := result.Steps[result.Current]
				of.Given = given
				var file bytes.Buffer
				err := unseen(t.Context(), answering{&fixedSession{state: asked}, result}, Play{Pace: time.Second, Until: step.ID, Record: &file}, z[0], z[1])
				if err != nil {
					t.Fatal(err)
				}
				question, answer, all := stays(t, file.Bytes())
				if question <= time.Second || answer < question-time.Millisecond { // which is what a cast can tell apart
					t.Errorf("the question stays for %s, and the result for %s", question, answer)
				}
				text := of.Explanation
				for _, check := range of.Checks {
					text += " " + check.Title
				}
				if want := time.Second * time.Duration(len(strings.Fields(text))) / wordsAPace; all < want {
					t.Errorf("all of the result stays for %s; to read it takes %s", all, want)
				}
			})
		}
	}
}

// stays is how long the screens of a step are in sight: the longest before it is applied, the first of its result, and all
// of its result.
func stays(t *testing.T, cast []byte) (question, first, all time.Duration) {
	t.Helper()
	viewer := labtest.View(t, cast)
	applied, results := false, 0
	for code, _ := viewer.Event(); code != ""; {
		screen, at := viewer.Text(), viewer.At
		for code, _ = viewer.Event(); code != "" && viewer.At == at; code, _ = viewer.Event() {
			screen = viewer.Text()
		}
		stay := viewer.At - at
		applied = applied || strings.Contains(screen, " applied: ")
		switch {
		case code == "" || strings.Contains(screen, " the end "):
			return question, first, all
		case stay < time.Second:
			t.Errorf("for %s there is\n%s", stay, screen)
		case !applied:
			question = max(question, stay)
		default:
			if results++; results == 1 {
				first = stay
			}
			all += stay
		}
	}
	return question, first, all
}

func TestAPlaySaysThatNobodyHasPredicted(t *testing.T) {
	for _, z := range [][2]int{{160, 45}, {80, 24}} {
		m, _ := with(t, wrong, z[0], z[1])
		m.player = &player{}
		if !onScreen(m, "✗ 1 was tried, and it is 2") {
			t.Errorf("%v: the judgement is not on the screen:\n%s", z, ansi.Strip(strings.Join(m.lines(), "\n")))
		}
	}
}

// TestAPlayIsHeldAndHurried presses the keys of somebody who looks on. No rest ends here but by the test.
func TestAPlayIsHeldAndHurried(t *testing.T) {
	m, s := with(t, open, 160, 45)
	shown := newPlayed(m, Play{Pace: time.Hour}, "migrate")
	update := func(msg tea.Msg) tea.Cmd {
		_, cmd := shown.Update(msg)
		return cmd
	}
	acts := func(msg tea.Msg, want ...string) {
		t.Helper()
		shown.Update(update(msg)()) // what the session answers
		if !slices.Equal(s.asked, want) {
			t.Fatalf("the session was asked for %q, not %q", s.asked, want)
		}
	}
	sees := func(text string) {
		t.Helper()
		if !onScreen(m, text) {
			t.Fatalf("%q is not on the screen:\n%s", text, ansi.Strip(strings.Join(m.lines(), "\n")))
		}
	}
	update(tea.WindowSizeMsg{Width: 160, Height: 45})
	sees(" step 4 of 11: Switch the storage version ")
	first := restedMsg{rest: m.player.rests}
	update(press("space"))
	sees("○ paused space goes on")
	if update(first); len(s.asked) > 0 {
		t.Errorf("a play that is paused asks for %q", s.asked)
	}
	acts(press("n"), "predict standard") // one thing, and it is paused still
	sees(" chooses 1: ")
	sees("○ paused")
	update(press("space"))
	update(restedMsg{rest: m.player.rests})
	sees(" applies: Switch the storage version ")
	update(press("?"))
	sees("The play")
	if update(restedMsg{rest: m.player.rests - 1}); len(s.asked) > 1 {
		t.Errorf("while the keys are shown it asks for %q", s.asked)
	}
	update(press("esc"))
	update(tea.WindowSizeMsg{Width: 60, Height: 20})
	update(press("n"))
	if update(restedMsg{rest: m.player.rests - 1}); len(s.asked) > 1 {
		t.Errorf("where the window is too small it asks for %q", s.asked)
	}
	update(tea.WindowSizeMsg{Width: 160, Height: 45})
	sees(" → next ")
	acts(press("right"), "predict standard", "apply")
	sees(" applied: Switch the storage version ")
	sees(" 1 was tried, and so it is ")
	if update(press("enter")); len(s.asked) > 2 {
		t.Errorf("a key that is not the play's asks for %q", s.asked)
	}
	if _, quits := update(press("q"))().(tea.QuitMsg); !quits {
		t.Error("q does not end it")
	}
}

// TestACastShowsEveryScreen brings screens of all kinds and sizes into a recording, and looks at it as a viewer does.
func TestACastShowsEveryScreen(t *testing.T) {
	var file bytes.Buffer
	at := time.Duration(0)
	r := &recording{to: &file, track: "migrate", now: func() time.Duration { return at }}
	var want [][]string
	for _, z := range [][2]int{{120, 30}, {160, 45}, {80, 24}} {
		for i, f := range fixtures {
			if f.name == "hostile" || f.name == "hostile-wide" {
				continue // they have characters about whose width terminals disagree
			}
			m := show(t, f, "dark", z[0], z[1])
			r.frame(m.lines(), m.w, m.h)
			r.mark(strconv.Itoa(len(want)))
			want = append(want, m.lines())
			at += time.Duration(i) * 1234567 * time.Nanosecond
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	viewer := labtest.View(t, file.Bytes())
	for i, lines := range want {
		if label := viewer.Mark(); label != strconv.Itoa(i) {
			t.Fatalf("the mark %q where that of screen %d should be", label, i)
		}
		sameCells(t, viewer.Screen, lines)
	}
	viewer.Mark()
	if viewer.Code != "0" {
		t.Errorf("it ends with the exit code %q", viewer.Code)
	}
	if d := (at - viewer.At).Abs(); d > time.Millisecond {
		t.Errorf("it takes %s instead of %s", viewer.At, at)
	}
}

// sameCells compares what is to be seen of every cell with a screen: of a blank, that is its background.
func sameCells(t *testing.T, seen *vt.Emulator, lines []string) {
	t.Helper()
	direct := vt.NewEmulator(seen.Width(), seen.Height())
	defer direct.Close()
	if _, err := direct.WriteString(strings.Join(lines, "\r\n")); err != nil {
		t.Fatal(err)
	}
	for y := range seen.Height() {
		for x := range seen.Width() {
			got, want := seen.CellAt(x, y), direct.CellAt(x, y)
			same := got.Style.Equal(&want.Style)
			if want.Content == " " {
				same = hex(got.Style.Bg) == hex(want.Style.Bg)
			}
			if got.Content != want.Content || !same {
				t.Fatalf("in line %d, column %d there is %q %v, and not %q %v\n%s", y, x, got.Content, got.Style, want.Content, want.Style, seen.Render())
			}
		}
	}
}

// hex is a colour as it can be compared.
func hex(c color.Color) string {
	if c == nil {
		return ""
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
}

// TestEveryTrackIsPlayed plays every track on a live API server and looks at the recording: a mark for each step, behind
// its first screen.
func TestEveryTrackIsPlayed(t *testing.T) {
	for _, track := range labtest.OnEmbedded() {
		t.Run(track.ID, func(t *testing.T) {
			t.Parallel()
			s := labtest.Start(t, track)
			var file bytes.Buffer
			if err := unseen(t.Context(), s, Play{Pace: time.Second, Record: &file}, 160, 45); err != nil {
				t.Fatal(err)
			}
			viewer := labtest.View(t, file.Bytes())
			for i := range track.Steps {
				if want, got := fmt.Sprintf("%d %s", i+1, track.StepTitle(i)), viewer.Mark(); got != want {
					t.Fatalf("the mark %q, where %q was to come", got, want)
				}
				screen := viewer.Text()
				for _, text := range []string{fmt.Sprintf("%d of %d", i+1, len(track.Steps)), fmt.Sprintf(" step %d of %d: %s ", i+1, len(track.Steps), track.StepTitle(i))} {
					if !strings.Contains(screen, text) {
						t.Errorf("at the mark of step %d there is no %q:\n%s", i+1, text, screen)
					}
				}
			}
			if viewer.Mark(); viewer.Code != "0" {
				t.Errorf("it ends with the exit code %q", viewer.Code)
			}
			for _, step := range s.State().Steps {
				if step.Phase != lab.Applied || step.Result != lesson.Passed {
					t.Errorf("%s: %s", step.ID, step.Result)
				}
			}
		})
	}
}
