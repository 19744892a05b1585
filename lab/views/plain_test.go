package views

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"github.com/crdlab/crdlab/lab"
)

func plainLab(s *fixedSession) *Lab {
	phases := make(chan Phase, 1)
	phases <- Phase{Name: "etcd", Done: true}
	close(phases)
	return &Lab{ClusterName: "embedded", Phases: phases, Start: func(context.Context) error { return nil },
		Open: func(context.Context, string) (Session, error) { return s, nil }}
}

// last makes the current step the last one, so that a lesson ends.
func last(st *lab.State) *lab.State {
	st.Steps = st.Steps[:st.Current+1]
	return st
}

func TestPlainTellsTheSame(t *testing.T) {
	for _, f := range fixtures {
		switch f.name {
		case "applied", "wrong", "refused", "unwanted", "unserved", "verified":
			t.Run(f.name, func(t *testing.T) {
				var out strings.Builder
				err := Plain(t.Context(), plainLab(&fixedSession{state: last(f.state())}), "migrate", strings.NewReader(""), &out)
				if failed := f.name == "unwanted"; failed != errors.Is(err, ErrStepFailed) || !failed && err != nil {
					t.Error(err)
				}
				golden.RequireEqual(t, out.String())
			})
		}
	}
}

func TestPlainAsksAndGoesOn(t *testing.T) {
	for input, want := range map[string][]string{
		"1\n\n": {"predict standard", "apply", "next", "apply", "close"},
		"x\n3":  {"predict error", "apply", "next", "apply", "close"},
		"":      {"apply", "next", "apply", "close"},
	} {
		st := before()
		st.Steps = st.Steps[:5]
		s := &fixedSession{state: st}
		var out strings.Builder
		if err := Plain(t.Context(), plainLab(s), "migrate", strings.NewReader(input), &out); err != nil {
			t.Error(err)
		}
		if !slices.Equal(s.asked, want) {
			t.Errorf("%q: the session was asked for %q, not %q", input, s.asked, want)
		}
		if strings.ContainsAny(out.String(), "\x1b│╭━") {
			t.Error("it is not plain")
		}
	}
}

func TestPlainAsksWhetherToGoOnWhereATrackWasLeft(t *testing.T) {
	for input, want := range map[string]string{"\n": "go on", "x\n\n": "go on", "n\n": "open", "": "open"} {
		s := &fixedSession{state: last(before())}
		l := plainLab(s)
		l.Tracks = []TrackInfo{{ID: "migrate", Steps: []string{"One", "Two"}, Left: Left{Step: 2, Right: 1, Given: 1}}}
		l.Open = func(context.Context, string) (Session, error) { s.note("open"); return s, nil }
		l.GoOn = func(context.Context, string) (Session, error) { s.note("go on"); return s, nil }
		var out strings.Builder
		if err := Plain(t.Context(), l, "migrate", strings.NewReader(input), &out); err != nil {
			t.Error(err)
		}
		if s.asked[0] != want || strings.Contains(out.String(), "Rebuilding the steps before it.") != (want == "go on") {
			t.Errorf("%q: the lab was asked for %q:\n%s", input, s.asked[0], out.String())
		}
		for _, said := range []string{"You left at step 2 of 2, Two. Of your predictions at the first try, 1 of 1 came", "Press enter to go on there, or n and enter to begin anew."} {
			if !strings.Contains(out.String(), said) {
				t.Errorf("%q: it does not say %q:\n%s", input, said, out.String())
			}
		}
	}
}

func TestPlainEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &fixedSession{state: before(), hold: make(chan struct{})}
	l := plainLab(s)
	l.Open = func(context.Context, string) (Session, error) { cancel(); return s, nil }
	if err := Plain(ctx, l, "migrate", nil, &strings.Builder{}); !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	if s.asked[len(s.asked)-1] != "close" {
		t.Errorf("the session was asked for %q", s.asked)
	}
}

// shut is where nothing can be written.
type shut struct{ tries int }

func (s *shut) Write([]byte) (int, error) { s.tries++; return 0, syscall.ENOSPC }

func TestPlainEndsWhereItCannotWrite(t *testing.T) {
	s := &fixedSession{state: before()}
	out := &shut{}
	if err := Plain(t.Context(), plainLab(s), "migrate", strings.NewReader(""), out); !errors.Is(err, syscall.ENOSPC) || out.tries != 1 {
		t.Errorf("%v, after %d writes", err, out.tries)
	}
	if slices.Contains(s.asked, "apply") {
		t.Errorf("the session was asked for %q", s.asked)
	}
}
