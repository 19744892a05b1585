package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/cluster"
)

// namespaceTimeout is how long a namespace may take to be deleted.
const namespaceTimeout = time.Minute

// Prepare makes the scope's namespace where it is missing, and makes the Service of a listener lead there again.
func (c *Cluster) Prepare(ctx context.Context, scope cluster.Scope) error {
	if err := c.makeNamespace(ctx, scope.Namespace); err != nil {
		return fmt.Errorf("create the namespace %s: %w", scope.Namespace, err)
	}
	c.mu.Lock()
	c.space = scope.Namespace
	webhooks := slices.Clone(c.webhooks)
	c.mu.Unlock()
	for _, w := range webhooks {
		if w.namespace != scope.Namespace {
			continue
		}
		if _, err := w.announce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeNamespace waits where one of that name is being deleted.
func (c *Cluster) makeNamespace(ctx context.Context, name string) error {
	spaces := c.client.CoreV1().Namespaces()
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{cluster.ManagedBy: cluster.Maker},
	}}
	ctx, cancel := context.WithTimeoutCause(ctx, namespaceTimeout, errors.New("not done after "+namespaceTimeout.String()))
	defer cancel()
	return poll(ctx, func(ctx context.Context) (bool, error) {
		there, err := spaces.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			there, err = spaces.Create(ctx, wanted, metav1.CreateOptions{})
		}
		if err == nil && there.DeletionTimestamp != nil {
			err = errors.New("the one before it is still being deleted")
		}
		return err == nil, err
	})
}

// Reset deletes the scope's CRD with its objects, whatever state they are in, the Service of ListenWebhook and the
// namespace, and returns when they are gone. What does not carry the lab's label stays: such a CRD is cluster.ErrForeign,
// such a namespace is left alone.
func (c *Cluster) Reset(ctx context.Context, scope cluster.Scope) error {
	if err := cluster.Remove(ctx, c, scope.Resource); err != nil {
		return err
	}
	if scope.Namespace == "" {
		return nil
	}
	if err := c.removeService(ctx, scope.Namespace); err != nil {
		return err
	}
	if err := c.removeNamespace(ctx, scope.Namespace); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reset the namespace %s: %w", scope.Namespace, err)
	}
	return nil
}

// removeNamespace returns when the namespace is gone. It is a NotFound if there was none.
func (c *Cluster) removeNamespace(ctx context.Context, name string) error {
	spaces := c.client.CoreV1().Namespaces()
	there, err := spaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil || there.Labels[cluster.ManagedBy] != cluster.Maker {
		return err
	}
	err = spaces.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID}})
	if err != nil && !apierrors.IsConflict(err) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, namespaceTimeout, errors.New("it is still there after "+namespaceTimeout.String()))
	defer cancel()
	return poll(ctx, func(ctx context.Context) (bool, error) {
		now, err := spaces.Get(ctx, name, metav1.GetOptions{})
		gone := apierrors.IsNotFound(err) || err == nil && now.UID != there.UID
		return gone, err
	})
}
