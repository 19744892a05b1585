package kit

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// writers is how many objects are created at once.
const writers = 16

// each does something with every document: the first alone, so that what is wrong with all is said once, then many at a
// time.
func each(ctx context.Context, docs []string, do func(context.Context, string) error) error {
	if len(docs) == 0 {
		return nil
	}
	if err := do(ctx, docs[0]); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, doc := range docs[1:] {
		g.Go(func() error { return do(ctx, doc) })
	}
	return g.Wait()
}
