package rewrite

import (
	"context"
	"errors"
	"testing"
)

// TestBystandersSeeEveryWriteOnce: a rewrite that is interrupted and begun anew sends each watcher one event for each object; a
// watcher whose place the server has forgotten is counted apart.
func TestBystandersSeeEveryWriteOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const objects, watchers = 40, 3
	s.CreateMany(objects)
	s.switchStorage()
	r := s.rewriter()
	others, err := r.Bystanders(s.Context(), "v1beta1", "w-000", watchers)
	s.Must(err)
	defer others.Close()

	killed, kill := context.WithCancelCause(s.Context())
	defer kill(nil)
	begun := make(chan struct{}, objects)
	fast := *r
	fast.Workers = 1
	fast.Gate = func(context.Context) error {
		if len(begun) == objects/2 {
			kill(ErrInterrupted)
			return ErrInterrupted
		}
		begun <- struct{}{}
		return nil
	}
	first, err := others.During(s.Context(), func(context.Context) error {
		_, err := fast.Rewrite(killed, "v1beta1")
		return err
	})
	s.Must(err)
	if !first.Interrupted || first.Written == 0 || first.Events < first.Written*watchers || first.Reads < fewestReads || first.P99MS < first.MedianMS || first.MemoryBytes == 0 {
		t.Errorf("the first part: %+v", first)
	}

	s.PatchCRD(`[{"op":"add","path":"/spec/names/shortNames","value":["wd"]}]`) // ends every watch
	s.Until("the watches are taken up again, or lost", func() bool {
		lost := 0
		for _, w := range others.watchers {
			if w.lost.Load() {
				lost++
			}
		}
		return int(others.resumed.Load())+lost >= watchers
	})
	second, err := others.During(s.Context(), func(ctx context.Context) error {
		_, err := r.Rewrite(ctx, "v1beta1")
		return err
	})
	s.Must(err)
	if second.Interrupted || second.Written != objects-first.Written || second.Watchers+second.Lost != watchers {
		t.Errorf("the second part: %+v", second)
	}
	if all := others.All(); all.Written != objects || all.Events != objects*all.Watchers {
		t.Errorf("both: %+v", all)
	}

	broken := errors.New("broken")
	if _, err := others.During(s.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error of the work became %v", err)
	}
}

// TestBystandersNeedAServedVersion: what cannot be watched is said at once.
func TestBystandersNeedAServedVersion(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if b, err := s.rewriter().Bystanders(s.Context(), "v9", "one", 1); err == nil {
		b.Close()
		t.Error("a version that is not served was watched")
	}
}
