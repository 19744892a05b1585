package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/steps"
)

func (a *app) reset() *cobra.Command {
	var p place
	c := &cobra.Command{
		Use:   "reset",
		Short: "Remove what the lab made",
		Long: "With --kubeconfig, --context or --cluster kind: removes the CRDs, the objects and the\n" +
			"namespace of the lab from that cluster, and nothing else; with --learner, of that\n" +
			"learner alone. On the cluster of --context you are asked before. Without any of\n" +
			"them: removes the folders that labs which were killed have left on this machine.",
		Example: "crdlab reset --kubeconfig lab.kubeconfig",
		Args:    arguments(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case p.outlives():
				return a.resetCluster(c.Context(), p)
			case p.learner != "":
				return usage("no cluster is named from which to remove what is %s's; give --context NAME, --kubeconfig FILE or --cluster kind", p.learner)
			}
			return a.resetMachine()
		},
	}
	p.flags(c)
	return c
}

// resetCluster removes what tracks make from a server that goes on.
func (a *app) resetCluster(ctx context.Context, p place) (err error) {
	c, err := a.agree(ctx, &p, toRemove, steps.Tracks()...)
	if err == nil && c == nil {
		c, err = p.open(ctx, "", nil)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(ctx, c.Close)) }()
	scopes, err := scopesOf(steps.Tracks(), p.learner, c.Info())
	if err != nil {
		return err
	}
	for _, s := range scopes {
		if err := a.resetBench(ctx, c, s); err != nil {
			return err
		}
		if err := a.resetScope(ctx, c, s); err != nil {
			return fmt.Errorf("remove %s: %w", s.Resource, err)
		}
	}
	return nil
}

// resetBench removes what a bench of faults that was killed has left in a scope's group; mostly nothing.
func (a *app) resetBench(ctx context.Context, c cluster.Cluster, s cluster.Scope) error {
	if err := cluster.CheckClaim(ctx, c, s); err != nil {
		return err
	}
	removed, err := bench.Remove(ctx, c, s.Resource.Group)
	if err == nil && removed {
		_, err = fmt.Fprintf(a.out, "removed %s and its objects\n", bench.Resource(s.Resource.Group))
	}
	return err
}

// resetScope removes a CRD with its objects, and the namespace also where there is no CRD any more.
func (a *app) resetScope(ctx context.Context, c cluster.Cluster, s cluster.Scope) error {
	crds, err := metadata.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	_, err = crds.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(ctx, s.Resource.String(), metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	if gone {
		if err := cluster.RemoveMigrations(ctx, c, s.Resource); err != nil {
			return err
		}
	}
	if !gone || s.Owner != "" {
		if err := cluster.Clean(ctx, c, s); err != nil {
			return err
		}
	}
	if gone {
		a.note("There was no CRD %s; nothing was removed.", s.Resource)
		return nil
	}
	_, err = fmt.Fprintf(a.out, "removed %s and its objects\n", s.Resource)
	return err
}

// resetMachine removes what labs that were killed have left.
func (a *app) resetMachine() error {
	removed, err := embedded.RemoveLeftovers()
	announced, announcedErr := lab.RemoveAnnouncements()
	removed, err = append(removed, announced...), errors.Join(err, announcedErr)
	for _, path := range removed {
		if _, err := fmt.Fprintf(a.out, "removed %s\n", path); err != nil {
			return err
		}
	}
	if len(removed) == 0 && err == nil {
		a.note("Nothing was left over. A lab that runs removes its own things at its end.")
	}
	return err
}
