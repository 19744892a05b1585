package main

import (
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

// terminal is the real program in an emulated terminal: what is typed goes to its standard input, what it draws is
// read back as a person would see it. Its standard error is a file, in which nothing may ever stand.
type terminal struct {
	t      testing.TB
	cmd    *exec.Cmd
	pty    *os.File
	stderr string
	temp   string
	state  string

	mu    sync.Mutex
	emu   *vt.Emulator
	drawn chan struct{} // closed at the next output
	ended chan struct{} // closed when the program's output has ended
}

// patience is how long a condition may take to come true on a busy machine; nothing waits for it to pass.
const patience = time.Minute

func openTerminal(t testing.TB, w, h int, args ...string) *terminal {
	t.Helper()
	return openProgram(t, "crdlab", w, h, args...)
}

func openProgram(t testing.TB, program string, w, h int, args ...string) *terminal {
	t.Helper()
	return openIn(t, t.TempDir(), program, w, h, args...)
}

// openIn opens a program whose state folder is there before.
func openIn(t testing.TB, state, program string, w, h int, args ...string) *terminal {
	t.Helper()
	x := &terminal{t: t, emu: vt.NewEmulator(w, h), drawn: make(chan struct{}), ended: make(chan struct{}),
		temp: t.TempDir(), state: state, stderr: filepath.Join(t.TempDir(), "stderr")}
	x.emu.SetDefaultBackgroundColor(color.Black)
	x.emu.SetDefaultForegroundColor(color.White)
	stderr, err := os.Create(x.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	x.cmd = exec.Command(program, args...)
	x.cmd.Dir = t.TempDir()
	x.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "NO_COLOR=", "TMPDIR="+x.temp, "XDG_STATE_HOME="+x.state)
	x.cmd.Stderr = stderr
	if x.pty, err = pty.StartWithSize(x.cmd, &pty.Winsize{Rows: uint16(h), Cols: uint16(w)}); err != nil {
		t.Fatal(err)
	}
	go x.draw()
	go x.answer()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		x.cmd.Wait()
		x.pty.Close()
		<-x.ended
		x.emu.Close()
	})
	return x
}

// draw brings the program's output to the screen.
func (x *terminal) draw() {
	defer close(x.ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := x.pty.Read(buf)
		x.mu.Lock()
		x.emu.Write(buf[:n])
		close(x.drawn)
		x.drawn = make(chan struct{})
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// answer brings the terminal's own answers (its colours, what it can do) to the program.
func (x *terminal) answer() {
	buf := make([]byte, 4<<10)
	for {
		n, err := x.emu.Read(buf)
		if err != nil {
			return
		}
		x.pty.Write(buf[:n])
	}
}

// screen is what stands on the screen, without colours.
func (x *terminal) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return ansi.Strip(x.emu.Render())
}

// press types keys.
func (x *terminal) press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		if _, err := x.pty.WriteString(k); err != nil {
			x.t.Fatalf("press %q: %v", k, err)
		}
	}
}

// see waits until all texts stand on the screen at once.
func (x *terminal) see(texts ...string) string {
	x.t.Helper()
	return x.until(strings.Join(texts, ", "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

func (x *terminal) until(what string, accept func(screen string) bool) string {
	x.t.Helper()
	end := time.After(patience)
	for {
		x.mu.Lock()
		drawn := x.drawn
		x.mu.Unlock()
		s := x.screen()
		if accept(s) {
			return s
		}
		select {
		case <-drawn:
		case <-x.ended:
			x.t.Fatalf("the program ended; not seen: %s\n%s", what, s)
		case <-end:
			x.t.Fatalf("not seen: %s\n%s", what, s)
		}
	}
}

// offers waits until a key is offered first in the last line: a screen is drawn from above, and is whole then.
func (x *terminal) offers(key string) string {
	x.t.Helper()
	return x.until("the key "+key, func(s string) bool {
		lines := strings.Split(strings.TrimRight(s, " \n"), "\n")
		return strings.HasPrefix(strings.TrimSpace(lines[len(lines)-1]), key)
	})
}

// find looks for a text in prose that may go on below what is in sight.
func (x *terminal) find(text string) string {
	x.t.Helper()
	for {
		screen := x.screen()
		if strings.Contains(screen, text) {
			return screen
		}
		if !strings.Contains(screen, "j ↓") {
			return x.see(text)
		}
		x.press("j")
		x.until("the prose moves", func(s string) bool { return s != screen })
	}
}

func (x *terminal) resize(w, h int) {
	x.t.Helper()
	x.mu.Lock()
	x.emu.Resize(w, h)
	x.mu.Unlock()
	if err := pty.Setsize(x.pty, &pty.Winsize{Rows: uint16(h), Cols: uint16(w)}); err != nil {
		x.t.Fatal(err)
	}
}

// leave waits for the end, which is to come with an exit code, and looks that nothing was left but the learner's progress,
// and nothing said.
func (x *terminal) leave(code int) {
	x.t.Helper()
	if said := x.end(code); said != "" {
		x.t.Errorf("on standard error: %q", said)
	}
}

// end waits for the end, looks that nothing was left, and returns what was said on standard error.
func (x *terminal) end(code int) (said string) {
	x.t.Helper()
	done := make(chan error, 1)
	go func() { done <- x.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		x.t.Fatalf("the program does not end\n%s", x.screen())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d", got, code)
	}
	text, err := os.ReadFile(x.stderr)
	if err != nil {
		x.t.Error(err)
	}
	for _, folder := range []string{x.temp, filepath.Join(x.state, "crdlab")} {
		found, _ := filepath.Glob(filepath.Join(folder, "*"))
		kept := func(path string) bool { return filepath.Base(path) == "progress" }
		if found = slices.DeleteFunc(found, kept); len(found) > 0 {
			x.t.Errorf("left behind: %v", found)
		}
	}
	return string(text)
}

// reports looks for lines in what crdlab report says of the learner.
func (x *terminal) reports(lines ...string) {
	x.t.Helper()
	report := exec.Command("crdlab", "report")
	report.Env = append(os.Environ(), "XDG_STATE_HOME="+x.state)
	out, err := report.Output()
	if err != nil {
		x.t.Fatalf("crdlab report: %v", err)
	}
	for _, l := range lines {
		if !regexp.MustCompile("(?m)" + l).Match(out) {
			x.t.Errorf("crdlab report does not say %s:\n%s", l, out)
		}
	}
}

const enter = "\r"

// The steps, and what is to be seen on the screen once each is applied.
type playedStep struct{ title, predict, seen string }

var playedSteps = []playedStep{
	{"Create v1alpha1", "3", "storedVersions is [v1alpha1]"},
	{"Add v1beta1", "3", "alpha has one resourceVersion"},
	{"Deprecate v1alpha1", "2", "then yours came instead"},
	{"Switch the storage version", "2", "storedVersions is [v1alpha1 v1beta1]"},
	{"Rewrite every object", "2", "etcd holds 6 at v1beta1, 0 at v1alpha1"},
	{"Attempt the removal", "2", "422"},
	{"Trim storedVersions", "3", "storedVersions is [v1beta1]"},
	{"Stop serving v1alpha1", "2", "alpha at v1alpha1 was answered with 404"},
	{"Relabel managedFields", "3", "sent again after the relabel"},
	{"Remove v1alpha1", "3", "spec.versions is v1beta1 alone"},
	{"Verify", "1", "the verdict is complete"},
}

// The same of the track with a webhook.
var webhookSteps = []playedStep{
	{"Create v1alpha1", "3", "5 objects are stored at v1alpha1"},
	{"Serve both, with a webhook", "2", "spec.conversion.strategy is Webhook"},
	{"One object, two views", "3", "both views of alpha have resourceVersion"},
	{"Convert first, prune afterwards", "2", "a changed name is an error: 500"},
	{"Switch the storage version", "1", "storedVersions is [v1alpha1 v1beta1]"},
	{"Write one object", "2", "alpha is stored at v1beta1, with displayName"},
	{"Stop serving v1alpha1", "2", "v1alpha1 is not served"},
	{"The webhook is down", "2", "the webhook is back: echo is read again"},
	{"Rewrite and relabel", "2", "etcd holds 6 at v1beta1, 0 at v1alpha1"},
	{"Try to remove v1alpha1", "2", "422"},
	{"Clean up", "3", "the strategy is None"},
	{"Verify", "1", "the verdict is complete"},
}

// beginWebhook goes from the start screen to the first step of the track with a webhook.
func (x *terminal) beginWebhook() {
	x.t.Helper()
	x.see("● live", "enter begin")
	x.press("j")
	x.see("▸ webhook")
	x.press(enter)
	x.offers("enter apply")
	x.see("1 of 12")
}

// begin goes from the start screen to the first step.
func (x *terminal) begin() {
	x.t.Helper()
	x.see("● live", "enter begin")
	x.press(enter)
	x.offers("enter apply")
	x.see("1 of 11")
}

func TestTheWholeTrackByKeys(t *testing.T) {
	for _, size := range [][2]int{{160, 45}, {80, 24}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, size[0], size[1])
			x.begin()
			x.play(playedSteps)
			x.press("q")
			x.leave(0)
		})
	}
}

func TestTheWholeWebhookTrackByKeys(t *testing.T) {
	for _, size := range [][2]int{{160, 45}, {80, 24}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, size[0], size[1])
			x.beginWebhook()
			x.play(webhookSteps)
			x.press("q")
			x.leave(0)
		})
	}
}

// play goes through all steps, predicts each rightly, and looks for what is to be seen.
func (x *terminal) play(steps []playedStep) {
	x.t.Helper()
	for i, step := range steps {
		x.offers("enter apply")
		x.see(step.title, fmt.Sprintf("%d of %d", i+1, len(steps)))
		x.press(step.predict + enter) // as fast as anybody can
		next := "enter go on"
		if i == len(steps)-1 {
			next = "enter to the tracks"
		}
		screen := x.offers(next)
		if !strings.Contains(strings.ToLower(screen), "you said "+step.predict+", and so it is") {
			x.t.Errorf("step %d does not say that the prediction was right:\n%s", i+1, screen)
		}
		x.find(step.seen)
		if i < len(steps)-1 {
			x.press(enter)
		}
	}
}

// untilServed goes to where both versions are served, so that the webhook is asked.
func (x *terminal) untilServed() {
	x.t.Helper()
	x.beginWebhook()
	for range 2 {
		x.offers("enter apply")
		x.press(enter)
		x.offers("enter go on")
		x.press(enter)
	}
	x.offers("enter apply")
	x.see("One object, two views")
}

// fault switches a fault on; the list begins with the first one where none is on.
func (x *terminal) fault(id string) {
	x.t.Helper()
	x.press("f")
	x.see("Faults of the webhook")
	at := slices.IndexFunc(conversion.Faults(), func(f conversion.Fault) bool { return f.ID == id })
	for range at {
		x.press("j")
	}
	x.see("▸   " + id)
	x.press(enter)
	x.see("✗ " + id + " is on")
	x.closeDialog("Faults of the webhook")
}

func (x *terminal) closeDialog(title string) {
	x.t.Helper()
	x.press("\x1b")
	x.until("the dialog is gone", func(s string) bool { return !strings.Contains(s, title) })
}

func TestAFaultIsSwitchedOnAndHealed(t *testing.T) {
	for _, size := range [][2]int{{160, 45}, {80, 24}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, size[0], size[1])
			x.untilServed()
			x.fault("wrong-service") // it is in the CRD
			x.see("✗ fault: wrong-service")
			x.press(enter)
			x.offers("f heal")
			x.see("500", "enter try again")
			x.press("f")
			x.see("enter heal")
			x.press(enter)
			x.see("the webhook is well")
			x.closeDialog("Faults of the webhook")
			x.until("no fault is on", func(s string) bool { return !strings.Contains(s, "✗ fault") })
			x.press(enter) // what failed under the fault does not count any more
			x.offers("enter go on")
			x.press("q")
			x.leave(0)
		})
	}
}

// TestAWebhookThatHangsHoldsNobodyUp switches a fault on under which a request waits for half a minute, and goes on.
func TestAWebhookThatHangsHoldsNobodyUp(t *testing.T) {
	for name, end := range map[string]func(*terminal){
		"healed by f, the step is done": func(x *terminal) {
			x.press("f")
			x.see("enter heal")
			x.press("0")
			x.see("the webhook is well")
			x.closeDialog("Faults of the webhook")
			x.offers("enter go on")
		},
		"q leaves at once": func(*terminal) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, 120, 30)
			x.untilServed()
			x.fault("hang")
			x.press(enter)
			x.see("waiting", "v1beta1")
			end(x)
			x.press("q")
			x.leave(0)
		})
	}
}

func TestEveryOperationIsTriedUnderAFault(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 160, 45)
	x.untilServed()
	x.press("f")
	x.see("Faults of the webhook")
	x.press("t")
	x.see("down what every operation is answered", "→ next fault", "no event in 3 s", "People see it first")
	x.press("\x1b")
	x.see("the webhook is well")
	x.closeDialog("Faults of the webhook")
	x.press(enter) // the step shows what it would have shown
	x.offers("enter go on")
	x.press("q")
	x.leave(0)
}

func TestAnAccidentThatTheClusterCannotCarryIsNotBegun(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 80, 24)
	x.begin()
	x.goTo("5", "Rewrite every object")
	x.press("w")
	x.see("What if …", "4 The controller that trims too early")
	x.press("4")
	x.see("needs StorageVersionMigration, which embedded")
	x.closeDialog("What if …")
	x.press("q")
	x.leave(0)
}

// accident is one that branches off a step of migrate.
type accident struct {
	step  int // its index
	place int // in the list of what branches off there, from 1
	track *lesson.Track
}

func anAccident() accident {
	return accident{step: migrate.Track().Step("switch-storage"), place: 4, track: pitfalls.EarlyTrim()}
}

// branchOff predicts at the first step, goes to the one that an accident branches off, predicts there too, and begins it.
func (x *terminal) branchOff(a accident) (number string) {
	x.t.Helper()
	x.begin()
	x.press("1" + enter)
	x.offers("enter go on")
	number = strconv.Itoa(a.step + 1)
	x.goTo(number, migrate.Track().StepTitle(a.step))
	x.press("2")
	x.see("▸ 2")
	x.press("w")
	x.see("What if …")
	x.press(strconv.Itoa(a.place))
	x.see("▸ " + strconv.Itoa(a.place) + " ")
	x.press(enter)
	x.see("migrate ▸ what if: ", "w leads back to step "+number+" of migrate", fmt.Sprintf("1 of %d", len(a.track.Steps)))
	return number
}

func TestAnAccidentBranchesOffAndLeadsBack(t *testing.T) {
	a := anAccident()
	for name, end := range map[string]func(x *terminal, number string){
		"by its last step": func(x *terminal, number string) {
			for i := range a.track.Steps {
				x.see(fmt.Sprintf("%d of %d", i+1, len(a.track.Steps)))
				x.offers("enter apply")
				x.press(enter)
				if i < len(a.track.Steps)-1 {
					x.offers("enter go on")
					x.press(enter)
				}
			}
			x.offers("enter back to step " + number)
			x.press(enter)
		},
		"by w": func(x *terminal, _ string) { x.press("w") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, 160, 45)
			number := x.branchOff(a)
			end(x, number)
			x.see(number+" of 11", "strategy ", "▸ 2")
			x.offers("enter apply")
			for range a.step {
				x.press("\x1b[D")
			}
			if a.step > 0 {
				x.see("looking back: step 1 as it was", "you said 1")
				x.press(enter)
			}
			x.offers("enter apply")
			x.press(enter)
			x.offers("enter go on")
			x.press("q")
			x.leave(0)
		})
	}
	t.Run("ctrl-c ends both", func(t *testing.T) {
		t.Parallel()
		x := openTerminal(t, 80, 24)
		x.branchOff(a)
		x.press(enter, "\x03")
		x.leave(130)
	})
}

// goTo goes to a step by its number.
func (x *terminal) goTo(number, title string) {
	x.t.Helper()
	x.press("g")
	x.see("Go to a step")
	x.press(number)
	x.see("▸  " + number + " ")
	x.press(enter)
	x.see(title, number+" of 11")
	x.offers("enter apply")
}

func TestAWrongPredictionIsCorrectedByWhatTheServerDid(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 160, 45)
	x.begin()
	x.press("1")
	x.see("▸ 1")
	x.press(enter)
	screen := x.offers("enter go on")
	if strings.Contains(screen, "and so it is") || !strings.Contains(screen, "you said 1") {
		t.Errorf("a wrong prediction looks like this:\n%s", screen)
	}
	x.press("q")
	x.leave(0)
}

// TestALessonGoesOnWhereItWasLeft does two steps, the first with a wrong prediction, quits, and comes back.
func TestALessonGoesOnWhereItWasLeft(t *testing.T) {
	for _, size := range [][2]int{{160, 45}, {80, 24}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			x := openIn(t, state, "crdlab", size[0], size[1])
			x.begin()
			for i, said := range []string{"1", "3"} {
				x.offers("enter apply")
				x.see(playedSteps[i].title)
				x.press(said + enter)
				x.offers("enter go on")
				if i == 0 {
					x.press(enter)
				}
			}
			x.press("q")
			x.leave(0)

			x = openIn(t, state, "crdlab", size[0], size[1])
			x.see("● live", "▸ migrate", "step 3 of 11")
			x.offers("enter go on at step 3")
			x.press(enter)
			x.offers("enter apply")
			x.see("Deprecate v1alpha1", "3 of 11")
			x.press("\x1b[D") // what was said in the steps before stands there again
			x.see("looking back: step 2 as it was")
			x.find("so it is")
			x.press("\x1b[D")
			x.see("looking back: step 1 as it was")
			x.find("ou said 1")
			x.press("q")
			x.leave(0)

			x.reports(`^you +migrate +2 of 11 +1 of 2 +\d+ s +3 Deprecate v1alpha1$`)

			x = openIn(t, state, "crdlab", size[0], size[1])
			x.see("● live")
			x.offers("enter go on at step 3")
			x.press("n")
			x.offers("enter apply")
			x.see("1 of 11", playedSteps[0].title)
			x.press("q")
			x.leave(0)
		})
	}
}

func TestAStepByHandCompletesByItself(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 160, 45)
	x.begin()
	x.press(enter)
	x.offers("enter go on")
	x.press(enter)
	x.offers("enter apply")
	x.see("Add v1beta1")
	x.press("K")
	x.see("By hand", "KUBECONFIG", "kubectl apply")
	x.press("\x1b")
	x.until("the dialog is gone", func(s string) bool { return !strings.Contains(s, "By hand") })
	kubeconfigs, err := filepath.Glob(filepath.Join(x.state, "crdlab", "*", "kubeconfig"))
	if err != nil || len(kubeconfigs) != 1 {
		t.Fatalf("kubeconfigs: %v, %v", kubeconfigs, err)
	}
	applyManifest(t, kubeconfigs[0], "add-v1beta1")
	x.offers("enter go on")
	x.find("alpha has one resourceVersion")
	x.press("q")
	x.leave(0)
	x.reports(`^ 1  ✓  Create v1alpha1 +none +1 `, `^ 2  ✓  Add v1beta1 +none +1 .* by hand$`, `^ 3  ○  Deprecate v1alpha1$`)
}

// applyManifest does by server-side apply what `crdlab manifests migrate STEP | kubectl apply -f -` does.
func applyManifest(t testing.TB, kubeconfig, step string) {
	t.Helper()
	yaml, err := exec.Command("crdlab", "manifests", "migrate", step).Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(string(yaml))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

func TestSizesThatAreTooSmallAndResizesInTheMiddle(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 20, 5)
	x.see("80")
	x.resize(160, 45)
	x.begin()
	for _, size := range [][2]int{{200, 25}, {100, 50}, {79, 24}, {80, 24}, {120, 30}} {
		x.resize(size[0], size[1])
		x.until(fmt.Sprintf("a whole screen at %d×%d", size[0], size[1]), func(s string) bool {
			if size[0] < 80 || size[1] < 24 {
				return strings.Contains(s, "80×24")
			}
			lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
			return len(lines) == size[1] && strings.Contains(lines[0], "crdlab") && strings.Contains(lines[len(lines)-1], "quit")
		})
	}
	x.press(enter)
	x.offers("enter go on")
	x.find("storedVersions is [v1alpha1]")
	x.press("q")
	x.leave(0)
}

func TestEveryWayOutLeavesNothingBehind(t *testing.T) {
	for name, out := range map[string]struct {
		do   func(*terminal)
		code int
	}{
		"q":       {func(x *terminal) { x.press("q", "q") }, 0}, // the first is asked back while the step is at work
		"ctrl-c":  {func(x *terminal) { x.press("\x03") }, 130},
		"SIGTERM": {func(x *terminal) { x.cmd.Process.Signal(syscall.SIGTERM) }, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openTerminal(t, 120, 30)
			x.begin()
			x.press(enter)
			out.do(x)
			x.leave(out.code)
		})
	}
}

func TestCtrlZStopsAndFgBringsTheScreenBack(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 120, 30)
	x.begin()
	x.press("\x1a")
	x.until("the main screen is back", func(string) bool { x.mu.Lock(); defer x.mu.Unlock(); return !x.emu.IsAltScreen() })
	end := time.After(patience)
	for tick := time.NewTicker(10 * time.Millisecond); ; { // it may not have stopped yet when the first signal comes
		if err := x.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		x.mu.Lock()
		back := x.emu.IsAltScreen()
		x.mu.Unlock()
		if back {
			break
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("the lab does not come back")
		}
	}
	x.offers("enter apply")
	x.see("1 of 11")
	x.press("q")
	x.leave(0)
}

// TestATrackIsLeftForTheList leaves a track in its middle and by its last step, each for another one.
func TestATrackIsLeftForTheList(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 120, 30)
	x.begin()
	x.press(enter)
	x.offers("enter go on")
	x.press(enter)
	x.offers("enter apply")
	x.press("\x1b")
	x.see("Leave the track?")
	x.press(enter)
	x.see("your objects, when a CRD changes its version", "step 2 of 11")
	x.press("\t", "\t") // to the pitfalls
	x.see("▸ pitfalls/early-trim")
	x.press(enter)
	for range pitfalls.EarlyTrim().Steps[1:] {
		x.offers("enter apply")
		x.press(enter)
		x.offers("enter go on")
		x.press(enter)
	}
	x.offers("enter apply")
	x.press(enter)
	x.offers("enter to the tracks")
	x.press(enter)
	x.see("your objects, when a CRD changes its version", "✓ done")
	x.press("q")
	x.leave(0)
}
