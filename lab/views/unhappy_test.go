package views

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

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
			input, keys := io.Pipe()
			defer input.Close()
			drawn := &drawing{}
			ended := make(chan error, 1)
			go func() {
				l := fixtureLab()
				l.Start = func(context.Context) error { return nil }
				l.Open = func(context.Context, string) (Session, error) { return s, nil }
				ended <- Run(t.Context(), l, Options{Track: "migrate", Input: input, Output: drawn, Environ: []string{"TERM=xterm-256color"},
					Profile: colorprofile.TrueColor, Width: 80, Height: 24})
			}()
			drawn.until(t, "enter apply")
			io.WriteString(keys, "\r")
			drawn.until(t, "waiting", "PATCH")
			io.WriteString(keys, "?") // it answers to keys all the while
			drawn.until(t, "Keys and signs")
			io.WriteString(keys, "?")
			io.WriteString(keys, c.key)
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
		})
	}
}

// drawing is all that a program has written to its terminal.
type drawing struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write keeps it, without what moves and colours.
func (d *drawing) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawing) until(t *testing.T, texts ...string) {
	t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		d.mu.Lock()
		all := escapes.ReplaceAllString(d.text.String(), "")
		d.mu.Unlock()
		missing := ""
		for _, text := range texts {
			if !strings.Contains(all, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never drawn: %q", missing)
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
