package views

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestRunClosesItsSessions ends the program in each way that there is.
func TestRunClosesItsSessions(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(keys io.Writer, cancel func())
		want error
	}{
		"q":       {func(keys io.Writer, _ func()) { io.WriteString(keys, "q") }, nil},
		"ctrl+c":  {func(keys io.Writer, _ func()) { io.WriteString(keys, "\x03") }, ErrInterrupted},
		"context": {func(_ io.Writer, cancel func()) { cancel() }, ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &fixedSession{state: before()}
			opened := make(chan struct{})
			l := plainLab(s)
			l.Open = func(context.Context, string) (Session, error) { close(opened); return s, nil }
			input, keys := io.Pipe()
			defer input.Close()
			go func() {
				<-opened
				c.end(keys, cancel)
			}()
			err := Run(ctx, l, Options{Track: "migrate", Input: input, Output: io.Discard, Environ: []string{"TERM=xterm-256color"},
				Profile: colorprofile.TrueColor, Width: 120, Height: 30})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
			if !slices.Contains(s.asked, "close") {
				t.Errorf("the session was asked for %q", s.asked)
			}
		})
	}
}

func TestRunRefusesAnUnknownTheme(t *testing.T) {
	if err := Run(t.Context(), &Lab{}, Options{Theme: "pink"}); err == nil {
		t.Error("it does not")
	}
}
