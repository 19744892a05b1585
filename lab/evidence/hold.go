package evidence

import "context"

// Hold keeps the observer from reading objects until release is called: for as long as conversions are counted, its own
// reads must not be among them. It returns when no read is under way. Sync and Rest may not return before the release.
func (o *Observer) Hold(ctx context.Context) (release func(), err error) {
	select {
	case o.reading <- struct{}{}:
		return func() { <-o.reading }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
