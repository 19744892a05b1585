package rewrite

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
)

func TestRewriteMovesTheBytesAndKeepsTheOwners(t *testing.T) {
	s := newScene(t)
	s.CreateMany(299)
	s.Accepted(s.Apply("v1alpha1", "applied", "team", `{"size":1,"color":"blue"}`), nil)
	before, applied := s.stored("w-000"), s.stored("applied")
	s.switchStorage()

	got, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if got.Written != 300 || got.Unchanged != 0 || got.Gone != 0 || len(got.Failures) != 0 {
		t.Errorf("result: %+v", got)
	}
	if got.Before.ByVersion["v1alpha1"] != 300 || !maps.Equal(got.After.ByVersion, map[string]int{"v1beta1": 300}) {
		t.Errorf("counted %v before and %v after", got.Before, got.After)
	}
	if now := s.counts(); !maps.Equal(now, map[string]int{"v1beta1": 300}) {
		t.Errorf("stored now: %v", now)
	}
	after := s.stored("w-000")
	if after.Spec["tier"] != "standard" {
		t.Errorf("the new default is not in the bytes: %v", after.Spec)
	}
	if after.Metadata.Generation != before.Metadata.Generation+1 {
		t.Errorf("generation was %d and is %d", before.Metadata.Generation, after.Metadata.Generation)
	}
	for name, was := range map[string]stored{"w-000": before, "applied": applied} {
		if now := s.stored(name); !reflect.DeepEqual(was.Metadata.ManagedFields, now.Metadata.ManagedFields) {
			t.Errorf("managedFields of %s were\n%v\nand are\n%v", name, was.Metadata.ManagedFields, now.Metadata.ManagedFields)
		}
	}
}

func TestRewriteTwiceIsRewriteOnce(t *testing.T) {
	s := newScene(t)
	s.CreateMany(20)
	s.switchStorage()
	_, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	revision, sent := s.value("w-005").ModRevision, s.Exchanges.Seq()

	again, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if again.Written != 0 || again.Unchanged != 0 {
		t.Errorf("with the bytes at hand nothing was left to do, but %+v", again)
	}
	for _, x := range s.Exchanges.Since(sent) {
		if x.Method == http.MethodPatch {
			t.Errorf("an object was written that was at the target: %s", x.Path)
		}
	}
	blind := s.rewriter()
	blind.Storage = nil
	again, err = blind.Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if again.Written != 0 || again.Unchanged != 20 || again.Before != nil || again.After != nil {
		t.Errorf("without the bytes: %+v", again)
	}
	if now := s.value("w-005").ModRevision; now != revision {
		t.Errorf("w-005 was written again: mod revision %d, then %d", revision, now)
	}
}

func TestRewriteWithoutBytesWritesWhatIsStale(t *testing.T) {
	s := newScene(t)
	s.CreateMany(30)
	s.switchStorage()
	blind := s.rewriter()
	blind.Storage = nil
	got, err := blind.Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if got.Written != 30 || !maps.Equal(s.counts(), map[string]int{"v1beta1": 30}) {
		t.Errorf("%+v; stored: %v", got, s.counts())
	}
}

func TestRewriteRefusesATargetThatIsNotTheStorageVersion(t *testing.T) {
	s := newScene(t)
	s.CreateMany(1)
	got, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	if err == nil || !strings.Contains(err.Error(), "v1alpha1") {
		t.Errorf("error: %v", err)
	}
	if got == nil || got.Written != 0 || s.counts()["v1alpha1"] != 1 {
		t.Errorf("result %+v, stored %v", got, s.counts())
	}
}

// answers stands in the middle and answers requests that it is asked to.
type answers struct {
	next http.RoundTripper
	pick func(*http.Request) *http.Response // nil: let it pass
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if resp := a.pick(r); resp != nil {
		return resp, nil
	}
	return a.next.RoundTrip(r)
}

func TestRewriteGoesOnAfterFailures(t *testing.T) {
	s := newScene(t)
	s.CreateMany(30)
	s.Create("v1alpha1", "x-gone", `{"size":1}`)
	s.Create("v1alpha1", "x-poison", `{"size":1}`)
	s.switchStorage()
	r := s.rewriter()
	r.Workers = 1
	// One object is deleted when its turn comes; another is refused by the middle as an admission webhook would.
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			switch {
			case req.Method != http.MethodPatch:
			case strings.HasSuffix(req.URL.Path, "/x-gone"):
				s.Accepted(s.Client.Unrecorded().Delete(t.Context(), s.Path("v1beta1", "x-gone")))
			case strings.HasSuffix(req.URL.Path, "/x-poison"):
				return refusal(req, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not this one","code":403}`)
			}
			return nil
		}}
	})
	got, err := r.Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	want := []Failure{{Namespace: s.Namespace, Name: "x-poison", Status: 403, Reason: "Forbidden", Message: "not this one"}}
	if got.Written != 30 || got.Gone != 1 || !slices.Equal(got.Failures, want) {
		t.Errorf("%+v", got)
	}
	if got.After.ByVersion["v1alpha1"] != 1 {
		t.Errorf("the count after must show what is left: %v", got.After)
	}
}

func TestRewriteRecordsWhatTheServerFindsInvalid(t *testing.T) {
	s := newScene(t)
	s.Create("v1alpha1", "good", `{"size":1}`)
	s.Create("v1alpha1", "over-the-maximum", `{"size":5000}`)       // an empty patch leaves it as it was: accepted
	s.Create("v1alpha1", "poison", `{"extra":{"anything":"goes"}}`) // a missing field beside unknown ones is not
	s.switchStorage()
	got, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if got.Written != 2 || len(got.Failures) != 1 {
		t.Fatalf("%+v", got)
	}
	f := got.Failures[0]
	if f.Name != "poison" || f.Status != http.StatusUnprocessableEntity || f.Reason != "Invalid" || f.Message == "" {
		t.Errorf("%+v", f)
	}
}

func TestRewriteWaitsWhenItIsAskedTo(t *testing.T) {
	s := newScene(t)
	s.CreateMany(3)
	s.switchStorage()
	var mu sync.Mutex
	refused := map[string]int{}
	r := s.rewriter()
	r.Client = s.ClientThrough(func(next http.RoundTripper) http.RoundTripper {
		return answers{next, func(req *http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			if req.Method != http.MethodPatch || refused[req.URL.Path] > 0 {
				return nil
			}
			refused[req.URL.Path]++
			if strings.HasSuffix(req.URL.Path, "0") {
				return refusal(req, http.StatusConflict, `{"kind":"Status","status":"Failure","reason":"Conflict","code":409}`)
			}
			return refusal(req, http.StatusTooManyRequests, `{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":1}}`)
		}}
	})
	began := time.Now()
	got, err := r.Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if got.Written != 3 || got.Conflicts != 1 || len(got.Failures) != 0 {
		t.Errorf("%+v", got)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("the server asked to wait a second, and it took %v", took)
	}
}

func TestRewriteStopsPromptlyAndIsTakenUpAgain(t *testing.T) {
	s := newScene(t)
	s.CreateMany(100)
	s.switchStorage()
	ctx, cancel := context.WithCancel(t.Context())
	r := s.rewriter()
	r.Workers = 4
	var gate sync.Mutex
	passed := 0
	r.Gate = func(ctx context.Context) error {
		gate.Lock()
		defer gate.Unlock()
		if passed++; passed == 40 {
			cancel()
		}
		return ctx.Err()
	}
	got, err := r.Rewrite(ctx, "v1beta1")
	if err == nil {
		t.Error("the context ended, and there is no error")
	}
	if got.Written == 0 || got.Written >= 40 || len(got.Failures) != 0 {
		t.Errorf("stopped before the 40th write: %+v", got)
	}
	left := s.counts()["v1alpha1"]
	again, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	// Writes that were cut off may have been stored after the count.
	if again.Written > left || again.Written < left-r.Workers || s.counts()["v1beta1"] != 100 {
		t.Errorf("%d were left, written %d; stored %v", left, again.Written, s.counts())
	}
}

func TestRewriteWaitsAtTheGate(t *testing.T) {
	s := newScene(t)
	s.CreateMany(10)
	s.switchStorage()
	open, waiting := make(chan struct{}), make(chan struct{}, 100)
	r := s.rewriter()
	r.Gate = func(ctx context.Context) error {
		waiting <- struct{}{}
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan *Result)
	go func() {
		got, _ := r.Rewrite(t.Context(), "v1beta1")
		done <- got
	}()
	<-waiting
	if now := s.counts(); now["v1beta1"] != 0 {
		t.Errorf("written while paused: %v", now)
	}
	close(open)
	if got := <-done; got.Written != 10 {
		t.Errorf("%+v", got)
	}
}

func TestProgressCountsToTheEnd(t *testing.T) {
	s := newScene(t)
	s.CreateMany(40)
	s.switchStorage()
	r := s.rewriter()
	r.QPS = 100
	var seen []Progress
	r.Progress = func(p Progress) { seen = append(seen, p) }
	began := time.Now()
	_, err := r.Rewrite(t.Context(), "v1beta1")
	s.Must(err)
	if took := time.Since(began); took < 350*time.Millisecond {
		t.Errorf("40 writes at 100 a second took %v", took)
	}
	if len(seen) < 3 {
		t.Fatalf("told %d times", len(seen))
	}
	for i, p := range seen[1:] {
		if p.Done < seen[i].Done {
			t.Errorf("progress went back: %+v, then %+v", seen[i], p)
		}
	}
	mid, last := seen[len(seen)/2], seen[len(seen)-1]
	if mid.Rate < 20 || mid.Rate > 200 || mid.Left <= 0 || mid.Finished {
		t.Errorf("half-way: %+v", mid)
	}
	if last.Done != 40 || last.Total != 40 || !last.Finished || last.BytesAfter <= last.BytesBefore || last.BytesBefore == 0 {
		t.Errorf("at last: %+v", last)
	}
}

func TestConcurrentWritersLoseNothingAndConflictWithNobody(t *testing.T) {
	s := newScene(t)
	s.CreateMany(50)
	s.switchStorage()
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body := fmt.Sprintf(`{"spec":{"color":"c%d-%d"}}`, n, i)
				s.Client.Unrecorded().Patch(ctx, s.Path("v1alpha1", fmt.Sprintf("w-%03d", i%50)), evidence.MergePatch, "", []byte(body))
			}
		})
	}
	got, err := s.rewriter().Rewrite(t.Context(), "v1beta1")
	stop()
	writers.Wait()
	s.Must(err)
	if len(got.Failures) != 0 || s.counts()["v1alpha1"] != 0 {
		t.Errorf("%+v; stored %v", got, s.counts())
	}
}
