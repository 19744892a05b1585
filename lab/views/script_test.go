package views

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// TestTheFileOfAStepDoesIt goes through every track by the files that o writes, and by nothing else: each runs to its
// end, says of a refusal that it was meant, and its step completes by itself. The last one is applied, and so is one with
// a part that only the lab can do: its file says which, and is one that a shell can read.
func TestTheFileOfAStepDoesIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	for _, track := range labtest.OnEmbedded() {
		t.Run(track.ID, func(t *testing.T) {
			t.Parallel()
			s := labtest.Start(t, track)
			m, err := newProgram(t.Context(), &Lab{}, Options{Theme: "dark", Profile: colorprofile.TrueColor, Width: 160, Height: 45})
			if err != nil {
				t.Fatal(err)
			}
			m.opened(openedMsg{session: s})
			for i := range track.Steps {
				alone := !onlyInLab(m.current())
				if alone {
					runFile(t, m, bin)
				} else {
					readFile(t, m)
				}
				reads := i == len(track.Steps)-1 && track.Steps[i].Judge == nil // there is nothing to be done by hand
				if reads || !alone {
					if err := s.Apply(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				step := whenApplied(t, s)
				if step.Result == lesson.Failed || step.ByHand != (alone && !reads) {
					t.Fatalf("%s: %s, by hand: %v, %v, %+v", step.ID, step.Result, step.ByHand, step.Err, step.Checks)
				}
				s.Next()
				m.show(s.State())
			}
		})
	}
}

// runFile has the program write the commands of its step, and runs them.
func runFile(t *testing.T, m *program, bin string) {
	t.Helper()
	m.strike("K", "o")
	d := m.dialogs[len(m.dialogs)-1].(*byHand)
	if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the file %q: %v", d.path, err)
	}
	cmd := exec.CommandContext(t.Context(), d.path)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", d.path, err, out)
	}
	meant := 0
	for _, a := range d.step.Actions {
		if refusalExpected(d.step, a.ID) {
			meant++
		}
	}
	if n := strings.Count(string(out), "refused, as intended"); n != meant {
		t.Errorf("%s: %d of %d refusals were seen\n%s", d.step.ID, n, meant, out)
	}
	m.strike("esc")
}

// readFile has the program write the commands of its step, some of which are only the lab's to do, and has a shell read them.
func readFile(t *testing.T, m *program) {
	t.Helper()
	m.strike("K", "o")
	d := m.dialogs[len(m.dialogs)-1].(*byHand)
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", d.path).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", d.path, err, out)
	}
	text, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range d.step.Actions {
		if len(a.Kubectl) == 0 && !strings.Contains(string(text), "# in the lab, by f or by enter: "+a.ID+"\n") {
			t.Errorf("the file of %s does not say that %s is the lab's to do:\n%s", d.step.ID, a.ID, text)
		}
	}
	m.strike("esc")
}

// whenApplied waits until the current step is applied, by whomever.
func whenApplied(t *testing.T, s *lab.Session) *lab.Step {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lesson.Timeout)
	defer cancel()
	for {
		changed := s.Changed()
		st := s.State()
		if step := st.Steps[st.Current]; step.Phase == lab.Applied {
			return step
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the step %s did not complete: %v", st.Steps[st.Current].ID, st.Steps[st.Current].Hints)
		}
	}
}

// TestAnAcceptedRefusalIsCalledByItsName runs a file whose refusal does not come.
func TestAnAcceptedRefusalIsCalledByItsName(t *testing.T) {
	st := refused()
	st.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	step := st.Steps[5]
	for command, want := range map[string]string{"true": "accepted, and was to be refused\n", "cat <<'E'\nx\nE": "x\naccepted, and was to be refused\n", "false": "refused, as intended\n"} {
		step.Actions[0].Kubectl = []string{"true", command}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", scriptFile(st, step)).Output()
		if err != nil || string(out) != want {
			t.Errorf("%s: %q, %v", command, out, err)
		}
	}
	step.Actions[0].ID = "another"
	if err := exec.CommandContext(t.Context(), "sh", "-c", scriptFile(st, step)).Run(); err == nil && strings.Contains(scriptFile(st, step), "false") {
		t.Error("a command that fails does not end the file")
	}
}
