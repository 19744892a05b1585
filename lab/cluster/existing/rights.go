package existing

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/cluster"
)

// right is what a lab must be allowed to do with one kind of things.
type right struct {
	group, resource, subresource, namespace string
	verbs                                   []string
}

func (r right) String() string {
	out := r.resource
	if r.group != "" {
		out += "." + r.group
	}
	if r.subresource != "" {
		out += "/" + r.subresource
	}
	if r.namespace != "" {
		out += " in " + r.namespace
	}
	return out
}

// needed are the rights for what a lab does in a scope. Those for etcdctl in a pod and for a StorageVersionMigration are no
// needs: without them the lab goes on without that.
func (c *Cluster) needed(s cluster.Scope) []right {
	const apiextensions, crds = "apiextensions.k8s.io", "customresourcedefinitions"
	all := []right{
		{group: apiextensions, resource: crds, verbs: []string{"get", "create", "update", "patch", "delete"}},
		{group: apiextensions, resource: crds, subresource: "status", verbs: []string{"patch"}},
		{resource: "namespaces", verbs: []string{"get", "create", "delete"}},
		{group: s.Resource.Group, resource: s.Resource.Plural, verbs: []string{"list"}},
		{group: s.Resource.Group, resource: s.Resource.Plural, namespace: s.Namespace, verbs: []string{"get", "create", "update", "patch", "delete"}},
	}
	if c.options.Webhook != "" { // the way to the webhook
		for group, resource := range map[string]string{"": "services", "discovery.k8s.io": "endpointslices"} {
			all = append(all, right{group: group, resource: resource, namespace: s.Namespace, verbs: []string{"get", "create", "patch", "delete"}})
		}
	}
	return all
}

// CheckRights asks the server whether the context's user may do all that a lab does in a scope, and names what is missing.
// A server that cannot be asked is not in the way.
func (c *Cluster) CheckRights(ctx context.Context, scope cluster.Scope) error {
	var missing []string
	for _, r := range c.needed(scope) {
		var verbs []string
		for _, verb := range r.verbs {
			allowed, err := c.may(ctx, r, verb)
			switch {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
				return nil
			case err != nil:
				return c.explain(ctx, fmt.Errorf("ask what the user may do: %w", err))
			case !allowed:
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			missing = append(missing, strings.Join(verbs, ", ")+" "+r.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the user of the context %s may not %s, which the lab needs; have the cluster's administrator grant it, or run on --cluster kind",
			c.options.Context, strings.Join(missing, "; "))
	}
	return nil
}

func (c *Cluster) may(ctx context.Context, r right, verb string) (bool, error) {
	review, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace, Verb: verb,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
