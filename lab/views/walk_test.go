package views

import (
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/labtest"
)

// TestTheTracksAreShown goes through every track on a live API server and looks at the screen before and after each
// step: it fills its window, and says the question and the checks.
func TestTheTracksAreShown(t *testing.T) {
	for _, track := range labtest.OnEmbedded() {
		t.Run(track.ID, func(t *testing.T) {
			s := labtest.Start(t, track)
			w := &walker{T: t, session: s}
			var err error
			w.program, err = newProgram(t.Context(), &Lab{}, Options{Theme: "dark", Profile: colorprofile.TrueColor})
			if err != nil {
				t.Fatal(err)
			}
			w.program.opened(openedMsg{session: s})
			for range track.Steps {
				w.step()
			}
		})
	}
}

type walker struct {
	*testing.T
	session *lab.Session
	program *program
}

func (w *walker) step() {
	w.Helper()
	w.program.show(w.session.State())
	step := w.program.current()
	w.look(step, append([]string{step.Title}, optionTexts(step)...))
	if err := w.session.Apply(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.program.show(w.session.State())
	step = w.program.current()
	w.look(step, []string{step.Title})
	w.program.w, w.program.h = 160, 45
	if over := w.program.screen().proseOverflow(); over > 0 {
		w.Errorf("%s: %d lines are out of sight at 160×45", step.ID, over)
	}
	if !done(step) {
		w.Fatalf("%s %s: %v", step.ID, step.Result, step.Err)
	}
	w.session.Next()
}

func optionTexts(step *lab.Step) []string {
	var out []string
	for _, o := range step.Options {
		out = append(out, unmarked(o.Text))
	}
	return out
}

// look draws the screen at several sizes; texts must stand on it, broken or not.
func (w *walker) look(step *lab.Step, texts []string) {
	w.Helper()
	for _, z := range [][2]int{{160, 45}, {120, 30}, {80, 24}, {100, 50}} {
		w.program.w, w.program.h = z[0], z[1]
		lines := w.program.lines()
		if len(lines) != z[1] {
			w.Errorf("%s %v: %d lines", step.ID, z, len(lines))
		}
		for i, l := range lines {
			if width(l) != z[0] {
				w.Errorf("%s %v: line %d is %d wide", step.ID, z, i, width(l))
			}
		}
		all := ansi.Strip(strings.Join(lines, "\n"))
		for _, text := range texts {
			if first, _, _ := strings.Cut(text, " "); !strings.Contains(all, first) {
				w.Errorf("%s %v: %q is not on the screen", step.ID, z, text)
			}
		}
	}
}
