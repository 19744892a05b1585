package kind

import (
	"context"
	"slices"

	"github.com/crdlab/crdlab/lab/cluster"
)

// Prepare makes the scope's namespace where it is missing, and makes the Service of a listener lead there again.
func (c *Cluster) Prepare(ctx context.Context, scope cluster.Scope) error {
	if err := cluster.MakeNamespace(ctx, c.Config(), scope); err != nil {
		return err
	}
	c.mu.Lock()
	c.scope = scope
	webhooks := slices.Clone(c.webhooks)
	c.mu.Unlock()
	for _, w := range webhooks {
		if w.service.Scope.Namespace != scope.Namespace {
			continue
		}
		if _, err := w.service.Announce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Reset deletes the scope's CRD with its objects, whatever state they are in, the Service of ListenWebhook and the
// namespace, and returns when they are gone. What does not carry the lab's label stays: such a CRD is cluster.ErrForeign,
// such a namespace is left alone.
func (c *Cluster) Reset(ctx context.Context, scope cluster.Scope) error {
	if err := cluster.Remove(ctx, c, scope.Resource, scope.Versions...); err != nil {
		return err
	}
	if scope.Namespace == "" {
		return nil
	}
	if err := cluster.RemoveWebhookService(ctx, c.client, scope.Namespace); err != nil {
		return err
	}
	return cluster.RemoveNamespace(ctx, c, scope)
}
