package lab_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/steps/webhook"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// bench is a session on a server of its own, and a client that is not the lab's.
type bench struct {
	*testing.T
	*lab.Session
	server *embedded.Server
	hand   *hand
}

func open(t *testing.T, o lab.Options) *bench {
	t.Helper()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	if o.Track == nil {
		o.Track = migrate.Track()
	}
	o.Cluster = c
	s, err := lab.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return &bench{T: t, Session: s, server: c, hand: newHand(t, c)}
}

// to applies the steps up to and with one, and goes on to the next.
func (b *bench) to(id string) {
	b.Helper()
	if err := lab.Run(b.Context(), b.Session, id, func(*lab.Step) {}); err != nil {
		b.Fatal(err)
	}
	if now := b.now(); now.ID != id || now.Result != lesson.Passed || !b.Next() {
		b.Fatalf("at %s, which %s: %v, %+v", now.ID, now.Result, now.Err, now.Checks)
	}
}

func (b *bench) now() *lab.Step {
	s := b.State()
	return s.Steps[s.Current]
}

// until waits for a state that a function accepts.
func (b *bench) until(what string, accept func(*lab.State) bool) *lab.State {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	for {
		changed := b.Changed()
		s := b.State()
		if accept(s) {
			return s
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.Fatalf("waited in vain until %s; live: %+v", what, s.Live)
		}
	}
}

func TestWhatTheTrackShowsStepByStep(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	type counts = map[string]int
	want := []struct {
		id     string
		record []string
		stored counts
	}{
		{"create-v1alpha1", []string{"v1alpha1"}, counts{"v1alpha1": 5}},
		{"add-v1beta1", []string{"v1alpha1"}, counts{"v1alpha1": 5}},
		{"deprecate-v1alpha1", []string{"v1alpha1"}, counts{"v1alpha1": 5}},
		{"switch-storage", []string{"v1alpha1", "v1beta1"}, counts{"v1alpha1": 5, "v1beta1": 1}},
		{"rewrite", []string{"v1alpha1", "v1beta1"}, counts{"v1beta1": 6}},
		{"attempt-removal", []string{"v1alpha1", "v1beta1"}, counts{"v1beta1": 6}},
		{"trim-stored-versions", []string{"v1beta1"}, counts{"v1beta1": 6}},
		{"stop-serving", []string{"v1beta1"}, counts{"v1beta1": 6}},
		{"relabel-managed-fields", []string{"v1beta1"}, counts{"v1beta1": 6}},
		{"remove-v1alpha1", []string{"v1beta1"}, counts{"v1beta1": 6}},
		{"verify", []string{"v1beta1"}, counts{"v1beta1": 6}},
	}
	i := 0
	err := lab.Run(t.Context(), b.Session, "", func(step *lab.Step) {
		w := want[i]
		i++
		if step.ID != w.id || step.Result != lesson.Passed || step.Err != nil {
			t.Errorf("step %d is %s, and %s: %v", i, step.ID, step.Result, step.Err)
		}
		last := step.Observations[len(step.Observations)-1]
		if last.After != "settled" || step.Observations[0].After != "before" || len(step.Observations) != len(step.Actions)+2 {
			t.Errorf("%s: the observations are not before, one after each action, settled", w.id)
		}
		if !reflect.DeepEqual(last.CRD.StoredVersions, w.record) || !reflect.DeepEqual(last.Stored.ByVersion, w.stored) {
			t.Errorf("%s: storedVersions %v, stored %v", w.id, last.CRD.StoredVersions, last.Stored.ByVersion)
		}
		for _, a := range step.Actions {
			if !a.Done || len(a.Exchanges) == 0 && w.id != "verify" {
				t.Errorf("%s/%s: done %v, exchanges %v", w.id, a.ID, a.Done, a.Exchanges)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if i != len(want) || b.State().Result() != lesson.Passed {
		t.Errorf("%d steps, and the run %s", i, b.State().Result())
	}
}

func TestAPredictionIsRightByWhatTheServerDid(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	if err := b.Predict("banana"); err == nil {
		t.Error("an option that there is not was taken")
	}
	if err := b.Predict("kept"); err != nil {
		t.Fatal(err)
	}
	if err := b.Predict("pruned"); err != nil {
		t.Error("a prediction may be changed before the step is applied:", err)
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := b.now(); !now.Right() || now.Answer != "pruned" {
		t.Errorf("given %q, answer %q", now.Given, now.Answer)
	}
	if err := b.Predict("kept"); err == nil {
		t.Error("a prediction was taken after the step")
	}
	if err := b.Apply(t.Context()); err == nil {
		t.Error("a step was applied twice")
	}
}

func TestGoingToAStepIsResetAndReplay(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	if err := b.GoTo(t.Context(), "nowhere"); err == nil {
		t.Error("went to a step that there is not")
	}
	if err := b.Predict("pruned"); err != nil {
		t.Fatal(err)
	}
	b.to("rewrite")
	if err := b.GoTo(t.Context(), "switch-storage"); err != nil {
		t.Fatal(err)
	}
	s := b.State()
	if first := s.Steps[0]; first.Given != "pruned" || !first.Right() {
		t.Errorf("what was predicted is lost: given %q, answer %q", first.Given, first.Answer)
	}
	now := s.Steps[s.Current]
	if now.ID != "switch-storage" || now.Phase != lab.Ready || s.Steps[s.Current+1].Phase != lab.Coming {
		t.Errorf("at %s, phase %d", now.ID, now.Phase)
	}
	if first := s.Steps[0]; !first.Rebuilt || !first.Right() || now.Rebuilt || s.Rebuilding != "" {
		t.Errorf("the first step was rebuilt: %v, with the prediction %q; rebuilding up to %q", first.Rebuilt, first.Given, s.Rebuilding)
	}
	if got := s.Live.Stored.ByVersion; !reflect.DeepEqual(got, map[string]int{"v1alpha1": 5}) {
		t.Errorf("stored: %v", got)
	}
	if err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := b.State(); s.Current != 0 || s.Live.CRD != nil || s.Live.Stored.Total != 0 {
		t.Errorf("after a reset: step %d, %+v", s.Current, s.Live)
	}
}

// TestAParkedSessionIsTakenUpAgain lends the cluster of each track to the other one, and comes back.
func TestAParkedSessionIsTakenUpAgain(t *testing.T) {
	for name, c := range map[string]struct {
		track, other *lesson.Track
		at           string
	}{
		"without a webhook": {migrate.Track(), webhook.Track(), "switch-storage"},
		"with a webhook":    {webhook.Track(), migrate.Track(), "prune-after-convert"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, lab.Options{Track: c.track})
			said := b.now().Options[0].ID
			if err := b.Predict(said); err != nil {
				t.Fatal(err)
			}
			if err := b.GoTo(t.Context(), c.at); err != nil {
				t.Fatal(err)
			}
			if err := b.Park(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "reset") {
				t.Errorf("a step was applied on a cluster that is another's: %v", err)
			}
			if now := b.now(); now.ID != c.at || now.Phase != lab.Ready {
				t.Errorf("what was seen is lost: at %s, phase %d", now.ID, now.Phase)
			}
			client, err := evidence.NewClient(b.server.Config(), evidence.NewLog())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			r, err := client.Get(t.Context(), evidence.DefinitionPath(b.State().Resource), nil)
			if err != nil || !strings.Contains(string(r.Body), `"strategy":"None"`) {
				t.Errorf("the CRD depends on a webhook that is closed: %v, %s", err, r.Body)
			}

			other, err := lab.Open(t.Context(), lab.Options{Track: c.other, Cluster: b.server})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(t.Context())
			if err := other.GoTo(t.Context(), c.other.Steps[3].ID); err != nil {
				t.Fatal(err)
			}
			if err := other.Close(t.Context()); err != nil {
				t.Fatal(err)
			}

			if err := b.GoTo(t.Context(), c.at); err != nil {
				t.Fatal(err)
			}
			if s := b.State(); s.Steps[0].Given != said || s.Steps[0].Answer == "" || s.Doing != "" || s.Trouble != nil {
				t.Errorf("given %q, answer %q; doing %q, trouble %v", s.Steps[0].Given, s.Steps[0].Answer, s.Doing, s.Trouble)
			}
			if err := b.Apply(t.Context()); err != nil || b.now().Result != lesson.Passed {
				t.Errorf("%v, %s", err, b.now().Result)
			}
		})
	}
}

func TestALabBeginsOnAnEmptyCluster(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.to("switch-storage")
	b.Close(t.Context())
	again, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: b.server})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(t.Context())
	if s := again.State(); s.Live.CRD != nil || s.Live.Stored.Total != 0 {
		t.Errorf("%+v", s.Live)
	}
}

func TestMoreWidgetsAreCreatedCountedAndRewritten(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{Widgets: 120})
	b.to("switch-storage")
	if got := b.State().Live.Stored.ByVersion; !reflect.DeepEqual(got, map[string]int{"v1alpha1": 120, "v1beta1": 1}) {
		t.Errorf("stored: %v", got)
	}
	b.to("rewrite")
	if got := b.State().Live.Stored.ByVersion; !reflect.DeepEqual(got, map[string]int{"v1beta1": 121}) {
		t.Errorf("stored: %v", got)
	}
	if _, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: b.server, Widgets: 2}); err == nil {
		t.Error("two widgets were taken, and the lesson speaks of five by name")
	}
}

func TestAPausedRewriteWritesNothing(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{Widgets: 60})
	b.to("switch-storage")
	b.Pause(true)
	done := make(chan error, 1)
	go func() { done <- b.Apply(context.WithoutCancel(t.Context())) }()
	b.until("the rewrite is asked for", func(s *lab.State) bool { return s.Steps[s.Current].Phase == lab.Running })
	if got := b.State().Live.Stored.ByVersion["v1beta1"]; got != 1 {
		t.Errorf("%d objects were rewritten in a pause", got-1)
	}
	b.Pause(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if now := b.now(); now.Result != lesson.Passed {
		t.Errorf("%s: %v", now.Result, now.Err)
	}
}

func TestAnInterruptedStepCanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{Widgets: 60})
	b.to("switch-storage")
	b.Pause(true) // holds the rewrite up, so that it can be interrupted
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Apply(ctx) }()
	b.until("it runs", func(s *lab.State) bool { return s.Steps[s.Current].Phase == lab.Running })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	b.Pause(false)
	if now := b.now(); now.Phase != lab.Ready || now.Err == nil {
		t.Errorf("phase %d, error %v", now.Phase, now.Err)
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := b.now(); now.Result != lesson.Passed || now.Err != nil {
		t.Errorf("%s: %v", now.Result, now.Err)
	}
}

func TestWhatOthersDoIsSeenAndRecorded(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.to("create-v1alpha1")
	path := evidence.ObjectPath(b.State().Resource, "v1alpha1", "crdlab", "alpha")
	b.hand.send(http.MethodPatch, path, evidence.MergePatch, `{"spec":{"color":"violet"}}`)
	s := b.until("the new colour and the request are seen", func(s *lab.State) bool {
		color, _ := s.Live.Object("alpha").View("v1alpha1").Field("spec", "color")
		return color == "violet" && slices.ContainsFunc(s.Log, func(x evidence.Exchange) bool { return x.Actor == evidence.ByHand })
	})
	i := slices.IndexFunc(s.Log, func(x evidence.Exchange) bool { return x.Actor == evidence.ByHand })
	if x := s.Log[i]; x.Method != http.MethodPatch || x.Status != http.StatusOK || x.Body != `{"spec":{"color":"violet"}}` || !x.To(path) {
		t.Errorf("recorded: %+v", x)
	}
	if now := s.Steps[s.Current]; now.Phase != lab.Ready {
		t.Error("a change that is not the step completed it")
	}
}

func TestAStepThatSomebodyUndoesIsNamed(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.to("rewrite")
	if u := b.State().Undone; len(u) != 0 {
		t.Fatalf("undone: %v", u)
	}
	b.hand.send(http.MethodPatch, evidence.DefinitionPath(b.State().Resource), evidence.JSONPatch,
		`[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]`)
	b.until("the storage switch is named as undone", func(s *lab.State) bool { return slices.Equal(s.Undone, []string{"switch-storage"}) })
}

func TestAWrongStateIsRecognisedAndTheWayOnNamed(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.to("attempt-removal")
	// the classic: storedVersions through the CRD itself is answered with 200 and ignored
	b.hand.send(http.MethodPatch, evidence.DefinitionPath(b.State().Resource), evidence.MergePatch, `{"status":{"storedVersions":["v1beta1"]}}`)
	s := b.until("there is a hint", func(s *lab.State) bool { return len(s.Steps[s.Current].Hints) > 0 })
	if hints := s.Steps[s.Current].Hints; len(hints) != 1 || !strings.Contains(hints[0], "--subresource=status") {
		t.Errorf("hints: %q", hints)
	}
	if !s.Live.Lists("v1alpha1") {
		t.Error("the main resource changed storedVersions")
	}
}

func TestWhatIsDoneAheadOfTheScreenIsTaken(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	if err := lab.Run(t.Context(), b.Session, "attempt-removal", func(*lab.Step) {}); err != nil {
		t.Fatal(err)
	}
	definition := evidence.DefinitionPath(b.State().Resource)
	b.hand.send(http.MethodPatch, definition, evidence.MergePatch, `{"status":{"storedVersions":["v1beta1"]}}`)
	for _, untrue := range []string{"v1alpha1", "v0"} {
		b.hand.send(http.MethodPatch, definition+"/status?dryRun=All", evidence.MergePatch, `{"status":{"storedVersions":["`+untrue+`"]}}`)
	}
	b.hand.send(http.MethodPatch, definition+"/status", evidence.MergePatch, `{"status":{"storedVersions":["v1beta1"]}}`)
	b.until("all of it is in the log", func(s *lab.State) bool {
		return slices.ContainsFunc(s.Log, func(x evidence.Exchange) bool {
			return x.Actor == evidence.ByHand && x.To(definition+"/status") && !x.DryRun()
		})
	})
	if !b.Next() {
		t.Fatal("the step before is not done")
	}
	b.until("the next step is done, by what was there", func(s *lab.State) bool {
		now := s.Steps[s.Current]
		return now.ID == "trim-stored-versions" && now.Result == lesson.Passed && now.ByHand
	})
}

func TestAnActionThatIsRefusedUnexpectedlyFailsItsStep(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.to("deprecate-v1alpha1")
	b.hand.send(http.MethodDelete, evidence.ObjectPath(b.State().Resource, "v1beta1", "crdlab", "alpha"), "", "")
	b.until("alpha is gone", func(s *lab.State) bool { return s.Live.Object("alpha") == nil })
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := b.now()
	if now.Result != lesson.Failed || b.State().Result() != lesson.Failed || b.Next() {
		t.Errorf("the step %s: %+v", now.Result, now.Checks)
	}
}

func TestAStateIsNotChangedAfterwards(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	before := b.State()
	step, live := before.Steps[0], before.Live
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before.Steps[0] != step || step.Phase != lab.Ready || len(step.Exchanges) != 0 || live.CRD != nil {
		t.Error("a state that was handed out has changed")
	}
}

// blind is a cluster whose etcd cannot be read.
type blind struct{ *embedded.Server }

func (blind) Storage() (storage.Reader, error) { return nil, storage.ErrNoAccess }

func TestWithoutTheBytesTheRunIsUnknown(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.Close(t.Context())
	s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: blind{b.server}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	skipped := 0
	if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		if step.Result == lesson.Failed {
			t.Errorf("%s failed: %v, %+v", step.ID, step.Err, step.Checks)
		}
		for _, c := range step.Checks {
			if c.Result == lesson.Skipped && c.Reason != "" {
				skipped++
			}
		}
		if step.After.Stored.Access || step.After.Object("alpha") != nil && step.After.Object("alpha").Stored != nil {
			t.Errorf("%s claims to have read bytes", step.ID)
		}
	}); err != nil {
		t.Fatal(err)
	}
	state := s.State()
	if state.Result() != lesson.Unknown || skipped == 0 || state.Steps[len(state.Steps)-1].Verdict.Verdict != verdict.Unknown {
		t.Errorf("the run: %s, %d checks were skipped", state.Result(), skipped)
	}
}

// TestTheWorstAccidentHasAWayBack removes a version while objects are stored at it. The lab names it, a step that fails for
// it stays open, and completes by itself once the way back has been gone.
func TestTheWorstAccidentHasAWayBack(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.to("switch-storage")
	resource := b.State().Resource
	definition := evidence.DefinitionPath(resource)
	b.hand.send(http.MethodPatch, definition+"/status", evidence.MergePatch, `{"status":{"storedVersions":["v1beta1"]}}`)
	b.hand.send(http.MethodPatch, definition, evidence.JSONPatch, `[{"op":"remove","path":"/spec/versions/0"}]`)
	named := func(s *lab.State) bool {
		hints := s.Steps[s.Current].Hints
		return len(hints) == 1 && strings.Contains(hints[0], "served: false")
	}
	b.until("the accident is named, and nothing else", named)
	b.until("alpha cannot be read", func(s *lab.State) bool { return s.Live.Object("alpha").View("v1beta1").Status >= 500 })
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := b.State()
	if now := s.Steps[s.Current]; now.Result != lesson.Failed || now.Err == nil || !named(s) {
		t.Fatalf("a rewrite of what cannot be read %s: %v, hints %q", now.Result, now.Err, now.Hints)
	}

	b.hand.send(http.MethodPatch, definition, evidence.JSONPatch, `[{"op":"add","path":"/spec/versions/0","value":{"name":"v1alpha1","served":true,"storage":false,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"},"color":{"type":"string"}}}}}}}}]`)
	b.hand.send(http.MethodPatch, definition+"/status", evidence.MergePatch, `{"status":{"storedVersions":["v1alpha1","v1beta1"]}}`)
	b.until("alpha can be read again", func(s *lab.State) bool { return s.Live.Object("alpha").View("v1beta1").Status == http.StatusOK })
	for _, name := range []string{"alpha", "bravo", "charlie", "delta", "echo"} {
		b.hand.send(http.MethodPatch, evidence.ObjectPath(resource, "v1beta1", "crdlab", name), evidence.MergePatch, `{}`)
	}
	s = b.until("the step completes by itself", func(s *lab.State) bool { return s.Steps[s.Current].Result == lesson.Passed })
	if now := s.Steps[s.Current]; !now.ByHand || now.Err != nil || len(now.Hints) > 0 {
		t.Errorf("by hand %v, error %v, hints %q", now.ByHand, now.Err, now.Hints)
	}
}

// mortal is a cluster that can end by itself.
type mortal struct {
	*embedded.Server
	ended chan struct{}
}

func (m mortal) Ended() <-chan struct{} { return m.ended }

func (mortal) Err() error { return errors.New("the server has died of something") }

func (m mortal) die(t *testing.T) {
	t.Helper()
	close(m.ended)
	if err := m.Server.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestADeadClusterEndsTheStepAndSaysWhy(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{})
	b.Close(t.Context())
	m := mortal{b.server, make(chan struct{})}
	s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: m})
	if err != nil {
		t.Fatal(err)
	}
	b.Session = s
	b.to("switch-storage")
	b.Pause(true)
	done := make(chan error, 1)
	go func() { done <- b.Apply(context.WithoutCancel(t.Context())) }()
	b.until("it runs", func(s *lab.State) bool { return s.Steps[s.Current].Phase == lab.Running })
	m.die(t)
	if err := <-done; err == nil || !strings.Contains(err.Error(), m.Err().Error()) {
		t.Errorf("the error is %v", err)
	}
	b.until("the trouble is said", func(s *lab.State) bool { return s.Trouble != nil && s.Trouble.Error() == m.Err().Error() })
	if now := b.now(); now.Phase != lab.Ready || now.Err == nil {
		t.Errorf("phase %d, error %v", now.Phase, now.Err)
	}
	s.Close(t.Context())
}
