package storage

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// merge makes one watch of that of a resource's objects and that of its CRD. Batches come as they come, and the revision
// of a batch is the lower of what the two have delivered. It ends with the context, or with either of the two.
func (l layout) merge(ctx context.Context, r Resource, after int64, objects, definition <-chan clientv3.WatchResponse) <-chan Batch {
	out := make(chan Batch)
	go func() {
		defer close(out)
		seen := [2]int64{after, after}
		for {
			var got clientv3.WatchResponse
			var open bool
			which := 0
			select {
			case got, open = <-objects:
			case got, open = <-definition:
				which = 1
			}
			b := Batch{}
			switch {
			case !open:
				b.Err = fmt.Errorf("the watch of etcd ended: %w", context.Cause(ctx))
				if ctx.Err() == nil {
					b.Err = fmt.Errorf("the watch of etcd ended")
				}
			case got.Err() != nil:
				b.Err = fmt.Errorf("the watch of etcd ended: %w", got.Err())
			default:
				seen[which] = max(seen[which], got.Header.Revision)
				if which == 0 {
					b.Changes, b.Err = l.changes(r, got.Events)
				} else if len(got.Events) > 0 {
					b.Changes = []Change{{CRD: true, Key: l.definition(r), Deleted: got.Events[len(got.Events)-1].Type == clientv3.EventTypeDelete}}
				}
			}
			b.Revision = min(seen[0], seen[1])
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
