package views

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/faulty"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

// TestWhileACallHangsTheProgramSaysSoAndEveryWayOutIsOpen runs the program on a server whose answer does not come.
func TestWhileACallHangsTheProgramSaysSoAndEveryWayOutIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		key  string
		want error
	}{"q": {"q", nil}, "ctrl-c": {"\x03", ErrInterrupted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := faulty.Start(t)
			s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: net})
			if err != nil {
				t.Fatal(err)
			}
			net.Break(faulty.Held(http.MethodPatch, nil))
			drawn := newScreen(t, 80, 24)
			ended := make(chan error, 1)
			go func() {
				l := fixtureLab()
				l.Start = func(context.Context) error { return nil }
				l.Open = func(context.Context, string) (Session, error) { return s, nil }
				ended <- Run(t.Context(), l, Options{Track: "migrate", Input: drawn.tty, Output: drawn.tty, Environ: []string{"TERM=xterm-256color"},
					Profile: colorprofile.TrueColor, Width: 80, Height: 24})
			}()
			drawn.until(t, "enter apply")
			drawn.press(t, "\r")
			drawn.until(t, "waiting", "PATCH")
			drawn.press(t, "?") // it answers to keys all the while
			drawn.until(t, "Keys and signs")
			drawn.press(t, "?")
			drawn.press(t, c.key)
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
		})
	}
}

// screenOf is a terminal of a program, and what stands on it.
type screenOf struct {
	tty   *os.File // the program's end
	pty   *os.File
	mu    sync.Mutex
	emu   *vt.Emulator
	drawn chan struct{} // closed at the next output
}

func newScreen(t *testing.T, w, h int) *screenOf {
	t.Helper()
	d := &screenOf{emu: vt.NewEmulator(w, h), drawn: make(chan struct{})}
	var err error
	if d.pty, d.tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(d.pty, &pty.Winsize{Rows: uint16(h), Cols: uint16(w)}); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup // what is drawn, and what the terminal answers; they end with it
	both.Go(func() { _, _ = io.Copy(d, d.pty) })
	both.Go(func() { _, _ = io.Copy(d.pty, d.emu) })
	t.Cleanup(func() {
		d.tty.Close()
		d.pty.Close()
		d.emu.InputPipe().(io.Closer).Close() // the emulator's own Close must not come while it is read
		both.Wait()
		d.emu.Close()
	})
	return d
}

func (d *screenOf) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.drawn)
	d.drawn = make(chan struct{})
	return d.emu.Write(p)
}

func (d *screenOf) press(t *testing.T, key string) {
	t.Helper()
	if _, err := d.pty.WriteString(key); err != nil {
		t.Fatal(err)
	}
}

// until waits until all texts stand there at once.
func (d *screenOf) until(t *testing.T, texts ...string) {
	t.Helper()
	end := time.After(time.Minute)
	for {
		d.mu.Lock()
		screen, drawn := ansi.Strip(d.emu.Render()), d.drawn
		d.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.Contains(screen, text) })
		if len(missing) == 0 {
			return
		}
		select {
		case <-drawn:
		case <-end:
			t.Fatalf("never drawn: %q\n%s", missing, screen)
		}
	}
}

func TestASecondQIsNotAskedForWhereNothingGetsOn(t *testing.T) {
	for name, state := range map[string]func() *lab.State{"waiting": waiting, "outage": outage} {
		m, _ := with(t, state, 80, 24)
		if m.leave(false) == nil {
			t.Errorf("%s: q does not quit", name)
		}
	}
	if m, _ := with(t, rewriting, 80, 24); m.leave(false) != nil {
		t.Error("q quits in the middle of a rewrite")
	}
}

func TestTheWaitingIsCountedInSeconds(t *testing.T) {
	for _, z := range [][2]int{{80, 24}, {120, 30}, {160, 45}} {
		m, _ := with(t, waiting, z[0], z[1])
		m.clock = func() time.Time { return noon }
		if !onScreen(m, "waiting 7 s for PATCH crds/widgets.lab.example.com") {
			t.Errorf("%v: %s", z, strings.Join(m.lines(), "\n"))
		}
		if m.start.live = true; m.keepTicking() == nil {
			t.Error("the seconds stand still")
		}
	}
}
