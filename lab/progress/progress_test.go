package progress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Under this variable the test binary is one of several writers, in a process of its own.
const writes = "CRDLAB_TEST_WRITES"

func TestMain(m *testing.M) {
	if folder := os.Getenv(writes); folder != "" {
		if err := write(context.Background(), Folder(folder), perWriter); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const perWriter = 20

// write counts tries of the first step.
func write(ctx context.Context, f Folder, times int) error {
	for range times {
		err := f.Update(ctx, "ana", "a/track", func(p *Progress) {
			p.of(begun())
			p.Steps[0].Tries++
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// begun is a session at the first of three steps.
func begun() *lab.State {
	st := &lab.State{Learner: "ana", Track: &lesson.Track{ID: "a/track"}, Cluster: cluster.Info{Type: "embedded", Version: "v1"}, StartedAt: morning}
	for i, id := range []string{"one", "two", "three"} {
		st.Steps = append(st.Steps, &lab.Step{ID: id, Title: strings.ToUpper(id), Index: i})
	}
	st.Steps[0].Phase = lab.Ready
	return st
}

var morning = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// with changes a copy of a state's current step.
func with(st *lab.State, change func(*lab.State, *lab.Step)) *lab.State {
	next := *st
	next.Steps = append([]*lab.Step(nil), st.Steps...)
	step := *next.Steps[next.Current]
	next.Steps[next.Current] = &step
	change(&next, &step)
	return &next
}

// applied applies the current step once more.
func applied(st *lab.State, given, answer string) *lab.State {
	return with(st, func(_ *lab.State, s *lab.Step) {
		s.Phase, s.Result, s.Given, s.Answer = lab.Applied, lesson.Passed, given, answer
		s.Attempt++
	})
}

func failed(st *lab.State, given string) *lab.State {
	return with(applied(st, given, ""), func(_ *lab.State, s *lab.Step) { s.Result = lesson.Failed })
}

func gone(st *lab.State) *lab.State {
	next := *st
	next.Current++
	return with(&next, func(_ *lab.State, s *lab.Step) { s.Phase = lab.Ready })
}

func rebuilt(st *lab.State) *lab.State {
	return with(applied(st, "", "a"), func(st *lab.State, s *lab.Step) { s.Rebuilt, st.Rebuilding = true, "three" })
}

// fixed is a session that shows one state after the other.
type fixed struct{ state *lab.State }

func (f *fixed) State() *lab.State        { return f.state }
func (f *fixed) Changed() <-chan struct{} { return nil }

// player brings states to a recorder, at times that it makes up.
type player struct {
	*testing.T
	*Recorder
	session *fixed
	now     time.Time
}

func play(t *testing.T) *player {
	p := &player{T: t, session: &fixed{state: begun()}, now: morning}
	p.Recorder = newRecorder(p.session, Folder(t.TempDir()), "v0")
	p.clock = func() time.Time { return p.now }
	p.stop = func() {}
	return p
}

// later shows a state after a while.
func (p *player) later(after time.Duration, st *lab.State) *lab.State {
	p.now = p.now.Add(after)
	p.session.state = st
	p.see(st)
	return st
}

// kept ends the session and returns what was written.
func (p *player) kept() *Progress {
	p.Helper()
	if err := p.Close(p.Context()); err != nil {
		p.Fatal(err)
	}
	kept, err := p.folder.Load(p.Context(), "ana", "a/track")
	if err != nil || kept == nil {
		p.Fatalf("%v, %v", kept, err)
	}
	return kept
}

func TestThePredictionOfTheFirstTryCounts(t *testing.T) {
	for name, c := range map[string]struct {
		tries []func(*lab.State) *lab.State
		want  *Prediction
	}{
		"right":                    {[]func(*lab.State) *lab.State{said("a")}, &Prediction{"a", true}},
		"wrong, then right":        {[]func(*lab.State) *lab.State{said("b"), said("a")}, &Prediction{"b", false}},
		"right, then wrong":        {[]func(*lab.State) *lab.State{said("a"), said("b")}, &Prediction{"a", true}},
		"nothing, then right":      {[]func(*lab.State) *lab.State{said(""), said("a")}, &Prediction{"", false}},
		"it failed, then right":    {[]func(*lab.State) *lab.State{func(st *lab.State) *lab.State { return failed(st, "b") }, said("a")}, &Prediction{"a", true}},
		"there is no question":     {[]func(*lab.State) *lab.State{func(st *lab.State) *lab.State { return applied(st, "", "") }}, nil},
		"only a later one, by lab": {[]func(*lab.State) *lab.State{rebuilt, said("a")}, &Prediction{"a", true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t)
			p.later(0, begun())
			attempts := 0
			for _, try := range c.tries {
				st := begun() // as after a reset; the log goes on
				st.Steps[0].Attempt = attempts
				p.later(time.Minute, st)
				st = p.later(time.Minute, try(st))
				attempts = st.Steps[0].Attempt
			}
			got := p.kept().Steps[0].Prediction
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func said(option string) func(*lab.State) *lab.State {
	return func(st *lab.State) *lab.State { return applied(st, option, "a") }
}

func TestTriesAndResults(t *testing.T) {
	p := play(t)
	st := p.later(0, begun())
	st = p.later(time.Minute, failed(st, "b"))
	p.later(0, st) // the same once more
	st = p.later(time.Minute, applied(st, "a", "a"))
	st = p.later(time.Minute, gone(st))
	p.later(time.Minute, with(applied(st, "a", "b"), func(_ *lab.State, s *lab.Step) { s.ByHand, s.Result = true, lesson.Skipped }))
	got := p.kept()
	one, two := got.Steps[0], got.Steps[1]
	if one.Tries != 2 || one.Result != lesson.Passed || one.ByHand || !one.FinishedAt.Equal(morning.Add(2*time.Minute)) {
		t.Errorf("%+v", one)
	}
	if two.Tries != 1 || two.Result != lesson.Unknown || !two.ByHand || !two.Done() {
		t.Errorf("%+v", two)
	}
	right, given := got.Predicted()
	if got.Done() != 2 || right != 1 || given != 2 || got.At != "three" || got.Finished() {
		t.Errorf("%d done, %d of %d right, at %s", got.Done(), right, given, got.At)
	}
	if at, middle := got.Left(); at != 2 || !middle {
		t.Errorf("left at %d, %v", at, middle)
	}
}

func TestTimeIsThatForWhichAStepWaits(t *testing.T) {
	p := play(t)
	st := p.later(0, begun())
	p.later(2*time.Minute, with(st, func(st *lab.State, s *lab.Step) { s.Phase, st.Doing = lab.Running, "applying" }))
	st = p.later(time.Hour, failed(st, "")) // the lab was at work
	st = p.later(time.Minute, applied(st, "", "a"))
	st = p.later(time.Hour, gone(st)) // they read why
	st = p.later(9*time.Hour, applied(st, "", "a"))
	st = p.later(0, gone(st))
	p.later(0, with(st, func(st *lab.State, _ *lab.Step) { st.Doing = "resetting" }))
	st = p.later(time.Hour, begun())
	st.Rebuilding = "two"
	p.later(0, st)
	p.later(time.Hour, rebuilt(st))
	got := p.kept()
	for i, want := range []time.Duration{3 * time.Minute, Longest, 0} {
		if spent := got.Steps[i].Spent(); spent != want {
			t.Errorf("step %d: %s, want %s", i+1, spent, want)
		}
	}
	if got.Spent() != 3*time.Minute+Longest {
		t.Errorf("%s in all", got.Spent())
	}
}

func TestWhatTheLabRebuildsIsNotTheLearners(t *testing.T) {
	p := play(t)
	st := begun()
	st.Rebuilding = "three"
	st = p.later(0, rebuilt(st))
	st = rebuilt(gone(st))
	p.later(time.Minute, st)
	st = gone(st)
	st.Rebuilding = ""
	p.later(0, st)
	got := p.kept()
	if got.Done() != 0 || got.Steps[0].Tries != 0 || got.At != "three" {
		t.Errorf("%+v", got)
	}
}

func TestAnEndedTrackIsNotLeft(t *testing.T) {
	p := play(t)
	st := p.later(0, begun())
	for i := range st.Steps {
		if st = p.later(time.Second, applied(st, "", "")); i < 2 {
			st = p.later(0, gone(st))
		}
	}
	got := p.kept()
	if _, middle := got.Left(); middle || !got.Finished() || got.At != "three" {
		t.Errorf("%+v", got)
	}
	if got.Cluster != (Cluster{"embedded", "v1"}) || got.Crdlab != "v0" || !got.StartedAt.Equal(morning) || !got.LastAt.Equal(morning.Add(3*time.Second)) {
		t.Errorf("%+v", got)
	}
}

func TestATrackThatHasChangedKeepsItsSteps(t *testing.T) {
	p := &Progress{At: "old", Steps: []Step{{ID: "old", Tries: 3}, {ID: "two", Tries: 2, Result: lesson.Passed}}}
	p.of(begun())
	if len(p.Steps) != 3 || p.Steps[1].Tries != 2 || p.Steps[0].Result != lesson.Skipped || p.At != "one" {
		t.Errorf("%+v", p)
	}
	if err := p.check(); err != nil {
		t.Error(err)
	}
}

// Several crdlabs of one learner lose nothing of each other, be they goroutines or processes.
func TestManyWriters(t *testing.T) {
	folder := Folder(t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	const each = 4
	for range each {
		writers.Go(func() {
			if err := write(t.Context(), folder, perWriter); err != nil {
				t.Error(err)
			}
		})
		writers.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), writes+"="+string(folder))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	writers.Wait()
	found, err := folder.All()
	if err != nil || len(found) != 1 || found[0].Steps[0].Tries != 2*each*perWriter {
		t.Fatalf("%+v, %v", found, err)
	}
	info, err := os.Stat(found[0].Path)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Base(found[0].Path) != "a_track@ana.json" {
		t.Errorf("%s: %v, %v", found[0].Path, info, err)
	}
}

func TestALockThatIsHeldIsNotWaitedForWithoutEnd(t *testing.T) {
	folder := Folder(t.TempDir())
	unlock, err := folder.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := write(ctx, folder, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	unlock()
	if err := write(t.Context(), folder, 1); err != nil {
		t.Error(err)
	}
}

// sound is a file that is as it should be, and parts of it that may be otherwise.
const sound = `{"apiVersion":"crdlab.dev/v1","kind":"Progress","learner":"ana","track":"a/track","at":"one","steps":[{"id":"one","title":"One","result":"passed"}]}`

func TestWhatIsDamagedIsPutAside(t *testing.T) {
	for name, content := range map[string]string{
		"empty":      "",
		"cut off":    sound[:40],
		"other kind": strings.Replace(sound, "Progress", "Run", 1),
		"no track":   strings.Replace(sound, "a/track", "", 1),
		"no step":    strings.Replace(sound, `"at":"one"`, `"at":"two"`, 1),
		"no name":    strings.Replace(sound, "ana", "A na", 1),
		"escapes":    strings.Replace(sound, "One", `\u001b[2J`, 1),
		"no result":  strings.Replace(sound, "passed", "good", 1),
		"too large":  sound + strings.Repeat(" ", maxSize),
	} {
		t.Run(name, func(t *testing.T) {
			for what, do := range map[string]func(Folder) error{
				"load":   func(f Folder) error { _, err := f.Load(t.Context(), "ana", "a/track"); return err },
				"update": func(f Folder) error { return write(t.Context(), f, 1) },
			} {
				folder := Folder(t.TempDir())
				path := folder.path("ana", "a/track")
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				err := do(folder)
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "put aside as "+path+".damaged-") {
					t.Errorf("%s: %v", what, err)
				}
				aside, _ := filepath.Glob(path + ".damaged-*")
				if len(aside) != 1 {
					t.Fatalf("%s: put aside: %v", what, aside)
				}
				if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != content {
					t.Errorf("%s: it is not what it was: %v", what, err)
				}
				p, err := folder.Load(t.Context(), "ana", "a/track")
				if err != nil || (p != nil) != (what == "update") {
					t.Errorf("%s: afterwards: %v, %v", what, p, err)
				}
			}
		})
	}
}

func TestAFolderThatCannotBeWrittenIsSaidAtTheEnd(t *testing.T) {
	p := play(t)
	file := filepath.Join(t.TempDir(), "progress")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.folder = Folder(file)
	p.later(time.Minute, applied(p.later(0, begun()), "a", "a"))
	if err := p.Close(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "your progress cannot be kept: ") || !strings.Contains(err.Error(), "XDG_STATE_HOME") {
		t.Errorf("%v", err)
	}
	if _, err := p.folder.Load(t.Context(), "ana", "a/track"); err == nil {
		t.Error("nobody says that it cannot be read")
	}
	// As soon as it can be written, nothing is lost.
	p.folder = Folder(t.TempDir())
	if got := p.kept(); got.Done() != 1 || got.Steps[0].Spent() != time.Minute {
		t.Errorf("%+v", got)
	}
}

func TestReadTellsTheGoodAndTheBad(t *testing.T) {
	class := t.TempDir()
	good, bad, other := filepath.Join(class, "ana", "a.json"), filepath.Join(class, "bad.json"), filepath.Join(class, "notes.txt")
	if err := os.Mkdir(filepath.Dir(good), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{good: sound, bad: "{", other: "notes"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(class, "missing")
	found, err := Read(class, good, missing)
	if len(found) != 1 || found[0].Path != good || found[0].Learner != "ana" {
		t.Errorf("%+v", found)
	}
	if !errors.Is(err, ErrDamaged) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
	if found, err := Folder(missing).All(); len(found) > 0 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
