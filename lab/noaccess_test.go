package lab_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// sealed is a cluster whose stored values cannot be read: from the beginning, or from the first value on, as where the API
// server encrypts them.
type sealed struct {
	*embedded.Server
	atOnce bool
}

var errSealed = errors.Join(storage.ErrNoAccess, errors.New("the values are encrypted"))

func (s sealed) Storage() (storage.Reader, error) {
	if s.atOnce {
		return nil, errSealed
	}
	from, err := s.Server.Storage()
	return sealedReader{from}, err
}

type sealedReader struct{ storage.Reader }

func (r sealedReader) Get(ctx context.Context, of storage.Resource, namespace, name string) (*storage.Value, error) {
	if _, err := r.Reader.Get(ctx, of, namespace, name); err != nil {
		return nil, err
	}
	return nil, errSealed
}

func (r sealedReader) Range(ctx context.Context, of storage.Resource, each func(*storage.Value) error) (int64, error) {
	return r.Reader.Range(ctx, of, func(*storage.Value) error { return errSealed })
}

func (r sealedReader) Watch(ctx context.Context, of storage.Resource, after int64) <-chan storage.Batch {
	out := make(chan storage.Batch)
	go func() { // ends with the watch
		defer close(out)
		for b := range r.Reader.Watch(ctx, of, after) {
			for _, c := range b.Changes {
				if !c.CRD {
					b = storage.Batch{Err: errSealed}
				}
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.Err != nil {
				return
			}
		}
	}()
	return out
}

func TestWithoutTheBytesARunGoesOnAndSaysThatItCannotTell(t *testing.T) {
	t.Parallel()
	for name, atOnce := range map[string]bool{"from the beginning": true, "from the first value": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := embedded.Start(t.Context(), embedded.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close(context.Background())
			var c cluster.Cluster = sealed{server, atOnce}
			s, err := lab.Open(t.Context(), lab.Options{Track: migrate.Track(), Cluster: c})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(context.Background())
			skipped := 0
			if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
				if step.Result == lesson.Failed || step.Err != nil {
					t.Errorf("%s: %v, %+v", step.ID, step.Err, step.Checks)
				}
				for _, check := range step.Checks {
					if check.Result == lesson.Skipped {
						skipped++
						if !strings.Contains(check.Reason, "the values are encrypted") {
							t.Errorf("%s/%s was skipped: %s", step.ID, check.ID, check.Reason)
						}
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
			now := s.State()
			last := now.Steps[len(now.Steps)-1]
			if skipped == 0 || now.Result() != lesson.Unknown || last.Phase != lab.Applied {
				t.Errorf("%d checks were skipped, and the run is %s at %s", skipped, now.Result(), now.Steps[now.Current].ID)
			}
			if last.Verdict == nil || last.Verdict.Verdict != verdict.Unknown {
				t.Errorf("the verdict: %+v", last.Verdict)
			}
			if stored := now.Live.Stored; stored.Access || len(stored.ByVersion) > 0 || !strings.Contains(stored.Reason, "encrypted") {
				t.Errorf("%+v", stored)
			}
		})
	}
}

func TestLearnersNames(t *testing.T) {
	for _, good := range []string{"", "ana", "a", "ana-2", "123", strings.Repeat("a", 56)} {
		if err := lab.CheckLearner(good); err != nil {
			t.Error(err)
		}
	}
	for bad, example := range map[string]string{"Ana": "ana", "ana.b": "ana-b", "-ana": "ana", "Åsa": "sa", "_": "ana", strings.Repeat("b", 57): strings.Repeat("b", 56)} {
		if err := lab.CheckLearner(bad); err == nil || !strings.HasSuffix(err.Error(), "for example "+example) {
			t.Errorf("%q: %v, want the example %s", bad, err, example)
		}
	}
}
