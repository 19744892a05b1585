package evidence_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/cluster/faulty"
	"github.com/crdlab/crdlab/lab/evidence"
)

// observeThrough observes a gear through a network that can be broken; without etcd where blind.
func observeThrough(t *testing.T, blind bool) (*bench, *faulty.Cluster) {
	t.Helper()
	c := faulty.Start(t)
	b := &bench{T: t, log: evidence.NewLog()}
	var err error
	if b.client, err = evidence.NewClient(c.Config(), b.log); err != nil {
		t.Fatal(err)
	}
	if !blind {
		if b.storage, err = c.Storage(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.storage.Close() })
	}
	b.apply(evidence.DefinitionPath(gears), define(true, ""))
	for b.get(evidence.CollectionPath(gears, "v2", "default")).Status != http.StatusOK {
	}
	b.gear("v1", "small", 12)
	if b.observer, err = evidence.Observe(t.Context(), b.client, b.storage, gears, "small"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.observer.Close)
	return b, c
}

// untilTrouble waits until the observer says that it cannot follow, or that it can.
func (b *bench) untilTrouble(want bool) error {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for {
		changed := b.observer.Changed()
		_, trouble := b.observer.Latest()
		if (trouble != nil) == want {
			return trouble
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.Fatalf("waited in vain for trouble %v: %v", want, trouble)
		}
	}
}

// TestTheObserverCatchesUp holds with etcd and without: what was seen stays while the network is broken, the trouble names
// the call, and what happened meanwhile is seen afterwards.
func TestTheObserverCatchesUp(t *testing.T) {
	for name, blind := range map[string]bool{"with etcd": false, "without": true} {
		for way, strike := range map[string]func(*faulty.Cluster){
			"gone":         (*faulty.Cluster).Gone,
			"unauthorized": func(c *faulty.Cluster) { c.Break(faulty.Unauthorized()) },
			"forbidden":    func(c *faulty.Cluster) { c.Break(faulty.ForbidDefinitions()) },
			"busy":         func(c *faulty.Cluster) { c.Break(faulty.Busy(-1, "")) },
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				b, net := observeThrough(t, blind)
				strike(net)
				trouble := b.untilTrouble(true)
				if !strings.Contains(trouble.Error(), "GET /apis/") && !strings.Contains(trouble.Error(), "etcd") {
					t.Errorf("the trouble is %v", trouble)
				}
				if o, _ := b.observer.Latest(); o.CRD == nil || o.Stored.Total != 1 || o.Object("small").View("v2").Status != http.StatusOK {
					t.Errorf("what was seen is gone: %+v", o)
				}
				behind, err := evidence.NewClient(net.Server.Config(), evidence.NewLog())
				if err != nil {
					t.Fatal(err)
				}
				b.client = behind
				b.gear("v1", "large", 99)
				net.Break(nil)
				net.Back()
				b.untilTrouble(false)
				o := b.until("the new gear is seen", func(o *evidence.Observation) bool { return o.Object("large").View("v2") != nil })
				if o.Stored.Total != 2 {
					t.Errorf("%+v", o.Stored)
				}
			})
		}
	}
}

func TestARequestThatIsNotAnsweredInTimeIsGivenUpAndNamed(t *testing.T) {
	t.Parallel()
	c := faulty.Start(t)
	config := c.Config()
	config.Timeout = 300 * time.Millisecond
	log := evidence.NewLog()
	client, err := evidence.NewClient(config, log)
	if err != nil {
		t.Fatal(err)
	}
	c.Break(faulty.Held(http.MethodGet, nil))
	_, err = client.Get(t.Context(), "/version", nil)
	if want := "GET /version: no answer: the API server has not answered within 300ms"; err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
	if xs := log.Since(0); len(xs) != 1 || xs[0].Status != 0 {
		t.Errorf("the log has %+v", xs)
	}
}

func TestAnAnswerThatBreaksOffIsNone(t *testing.T) {
	t.Parallel()
	c := faulty.Start(t)
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	if err != nil {
		t.Fatal(err)
	}
	c.Break(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Write([]byte(`{"half":`))
		http.NewResponseController(w).Flush()
		c.Gone()
		panic(http.ErrAbortHandler)
	})
	_, err = client.Get(t.Context(), "/version", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "GET /version: no answer: in the middle of it: ") || strings.HasSuffix(err.Error(), "EOF") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhoWaitsForLongIsKnown(t *testing.T) {
	t.Parallel()
	c := faulty.Start(t)
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	c.Break(faulty.Held(http.MethodGet, released))
	none, changed := client.Waiting()
	done := make(chan error, 1)
	go func() {
		_, err := client.As(evidence.ByObserver).Unrecorded().Get(t.Context(), "/version", nil)
		done <- err
	}()
	<-changed
	waiting, changed := client.Waiting()
	if none != nil || waiting == nil || waiting.Method != http.MethodGet || waiting.Path != "/version" || waiting.Actor != evidence.ByObserver {
		t.Errorf("%+v, then %+v", none, waiting)
	}
	close(released)
	<-changed
	if waiting, _ := client.Waiting(); waiting != nil {
		t.Errorf("it still waits: %+v", waiting)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
