package kind

import (
	"context"

	"github.com/crdlab/crdlab/lab/cluster"
)

// Prepare makes the scope's namespace where it is missing, and makes the Service of a listener lead there again.
func (c *Cluster) Prepare(ctx context.Context, scope cluster.Scope) error {
	return c.full.Prepare(ctx, scope)
}

// Reset deletes the scope's CRD with its objects, whatever state they are in, the Service of ListenWebhook and the
// namespace, and returns when they are gone. What does not carry the lab's label stays: such a CRD is cluster.ErrForeign,
// such a namespace is left alone.
func (c *Cluster) Reset(ctx context.Context, scope cluster.Scope) error {
	return c.full.Clear(ctx, c, scope)
}
