package lab_test

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/faulty"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

// unhappy is a bench whose network can be broken.
type unhappy struct {
	*bench
	net *faulty.Cluster
}

func openUnhappy(t *testing.T, widgets int) *unhappy {
	t.Helper()
	c := faulty.Start(t)
	s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: c, Widgets: widgets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return &unhappy{&bench{T: t, Session: s, server: c.Server, hand: newHand(t, c)}, c}
}

// whole are the ways in which no request gets the answer that it should.
var whole = map[string]struct {
	strike func(*faulty.Cluster)
	said   []string // in the trouble, and in the error of a step
}{
	"gone":         {(*faulty.Cluster).Gone, []string{"no answer", "does the cluster still run"}},
	"unauthorized": {func(c *faulty.Cluster) { c.Break(faulty.Unauthorized()) }, []string{"Unauthorized", "get new ones"}},
	"forbidden":    {func(c *faulty.Cluster) { c.Break(faulty.ForbidDefinitions()) }, []string{`resource "customresourcedefinitions"`, "ask whoever runs the cluster"}},
	"busy":         {func(c *faulty.Cluster) { c.Break(faulty.Busy(-1, "")) }, []string{"Too many requests", "give it a moment"}},
}

func heal(c *faulty.Cluster) {
	c.Break(nil)
	c.Back()
}

func (u *unhappy) says(err error, texts ...string) {
	u.Helper()
	if err == nil {
		u.Fatal("there is no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			u.Errorf("%q is not in: %v", text, err)
		}
	}
}

func TestAnUnhappyClusterIsNamedAndWhenItIsBackTheLessonGoesOn(t *testing.T) {
	for name, way := range whole {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := openUnhappy(t, 0)
			u.to("add-v1beta1")
			path := evidence.DefinitionPath(u.State().Resource)
			way.strike(u.net)
			// While it is the learner's turn:
			s := u.until("the trouble is seen", func(s *lab.State) bool { return s.Trouble != nil })
			u.says(s.Trouble, append(way.said, "GET /apis/")...)
			if s.Live.CRD == nil || s.Live.Stored.Total != 5 || s.Live.Object("alpha").View("v1beta1").Status != http.StatusOK {
				t.Errorf("what was seen before is gone: %+v", s.Live)
			}
			// In a step:
			err := u.Apply(t.Context())
			u.says(err, append(way.said, "PATCH "+path)...)
			if now := u.now(); now.Phase != lab.Ready || now.Err == nil {
				t.Errorf("phase %d, error %v", now.Phase, now.Err)
			}
			heal(u.net)
			u.until("the trouble is over", func(s *lab.State) bool { return s.Trouble == nil })
			if err := u.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if now := u.now(); now.Result != lesson.Passed || now.Err != nil {
				t.Errorf("%s: %v, %+v", now.Result, now.Err, now.Checks)
			}
			if err := u.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := u.State(); s.Current != 0 || s.Live.CRD != nil || s.Trouble != nil {
				t.Errorf("after a reset: step %d, %+v, %v", s.Current, s.Live, s.Trouble)
			}
		})
	}
}

// moved is how many widgets are rewritten before something happens.
const moved = 100

// midRewrite begins the rewrite of many widgets, in the middle of which a fault begins.
func (u *unhappy) midRewrite(f faulty.Fault) <-chan error {
	u.Helper()
	u.to("switch-storage")
	u.net.Break(faulty.After(moved, http.MethodPatch, f))
	done := make(chan error, 1)
	go func() { done <- u.Apply(u.Context()) }()
	return done
}

func (u *unhappy) rewritten(widgets int) {
	u.Helper()
	now := u.now()
	if now.Result != lesson.Passed || now.Err != nil {
		u.Fatalf("%s: %v, %+v", now.Result, now.Err, now.Checks)
	}
	if got := now.After.Stored.ByVersion; !reflect.DeepEqual(got, map[string]int{"v1beta1": widgets + 1}) {
		u.Errorf("stored: %v", got)
	}
}

func TestARewriteRidesOutAServerThatIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	u := openUnhappy(t, 400)
	done := u.midRewrite(u.net.Cut())
	s := u.until("it says what it waits for", func(s *lab.State) bool { return s.Progress != nil && s.Progress.Waiting != "" })
	if w := s.Progress.Waiting; !strings.Contains(w, "PATCH /apis/") && !strings.Contains(w, "etcd") || !strings.Contains(w, "3m0s") {
		t.Errorf("it waits for: %s", w)
	}
	u.until("the trouble is seen", func(s *lab.State) bool { return s.Trouble != nil })
	heal(u.net)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	u.rewritten(400)
	u.until("the trouble is over", func(s *lab.State) bool { return s.Trouble == nil })
}

func TestARewriteRidesOutABusyServerAndSaysSo(t *testing.T) {
	t.Parallel()
	u := openUnhappy(t, 400)
	done := u.midRewrite(faulty.Busy(40, http.MethodPatch))
	s := u.until("it says what it waits for", func(s *lab.State) bool { return s.Progress != nil && s.Progress.Waiting != "" })
	if !strings.Contains(s.Progress.Waiting, "429") {
		t.Errorf("it waits for: %s", s.Progress.Waiting)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	u.rewritten(400)
}

func TestARewriteEndsWhereTheCredentialsDoAndIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	u := openUnhappy(t, 400)
	done := u.midRewrite(faulty.Unauthorized())
	u.says(<-done, "PATCH /apis/", "Unauthorized", "get new ones")
	if r := u.now().Rewrite; r == nil || r.Written == 0 || r.Written > moved {
		t.Errorf("what was done until then is not said: %+v", r)
	}
	heal(u.net)
	if err := u.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.rewritten(400)
}

func TestASlowServerIsBorneAndTheWaitingIsSaid(t *testing.T) {
	t.Parallel()
	u := openUnhappy(t, 0)
	u.to("add-v1beta1")
	u.net.Break(faulty.Slow(1500 * time.Millisecond))
	done := make(chan error, 1)
	go func() { done <- u.Apply(u.Context()) }()
	s := u.until("the waiting is said", func(s *lab.State) bool { return s.Waiting != nil && s.Waiting.Actor == evidence.ByStep })
	// the first of the step that lasts long enough to be seen: on a busy machine not always the change of the CRD
	if w := s.Waiting; !strings.Contains(w.Path, s.Resource.Group) || w.Since.IsZero() {
		t.Errorf("%+v", w)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if now := u.now(); now.Result != lesson.Passed || now.Err != nil {
		t.Errorf("%s: %v, %+v", now.Result, now.Err, now.Checks)
	}
	u.net.Break(nil)
	u.until("nothing is waited for", func(s *lab.State) bool { return s.Waiting == nil })
}

func TestAHangingCallCanBeGivenUp(t *testing.T) {
	t.Parallel()
	u := openUnhappy(t, 0)
	u.to("add-v1beta1")
	u.net.Break(faulty.Held(http.MethodPatch, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Apply(ctx) }()
	u.until("the waiting is said", func(s *lab.State) bool { return s.Waiting != nil })
	cancel()
	if err := <-done; err == nil {
		t.Error("there is no error")
	}
	u.net.Break(nil)
	if err := u.Apply(t.Context()); err != nil || u.now().Result != lesson.Passed {
		t.Errorf("%v, %+v", err, u.now())
	}
}

func TestAResetThatFailsIsNamedAndDoneAgain(t *testing.T) {
	t.Parallel()
	u := openUnhappy(t, 0)
	u.to("add-v1beta1")
	u.net.Gone()
	u.says(u.Reset(t.Context()), "reset the cluster", "/apis/", "does the cluster still run")
	u.says(u.State().Trouble, "reset again")
	u.says(u.Apply(t.Context()), "reset again")
	u.net.Back()
	if err := u.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.to("add-v1beta1")
}
