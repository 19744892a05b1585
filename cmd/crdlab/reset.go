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
	"github.com/crdlab/crdlab/lab/steps"
	"github.com/crdlab/crdlab/lab/storage"
)

func (a *app) reset() *cobra.Command {
	var p place
	c := &cobra.Command{
		Use:   "reset",
		Short: "Remove what the lab made",
		Long: "With --kubeconfig, or --cluster kind: removes the CRDs and objects of the lab\n" +
			"from that cluster, and nothing else. Without either: removes the folders that labs\n" +
			"which were killed have left on this machine.",
		Example: "crdlab reset --kubeconfig lab.kubeconfig",
		Args:    arguments(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			if !p.outlives() {
				return a.resetMachine()
			}
			return a.resetCluster(c.Context(), p)
		},
	}
	c.Flags().StringVar(&p.kubeconfig, "kubeconfig", "", "the kubeconfig of a crdlab serve")
	p.flags(c)
	return c
}

// resetCluster removes what tracks make from a server that goes on.
func (a *app) resetCluster(ctx context.Context, p place) (err error) {
	c, err := p.open(ctx, "", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(ctx, c.Close)) }()
	crds, err := metadata.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	removed := map[storage.Resource]bool{}
	for _, t := range steps.Tracks() {
		r := storage.Resource{Group: lab.DefaultGroup, Plural: t.Plural}
		if removed[r] {
			continue
		}
		removed[r] = true
		_, err := crds.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(ctx, r.String(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			if err := cluster.RemoveMigrations(ctx, c, r); err != nil {
				return err
			}
			a.note("There was no CRD %s; nothing was removed.", r)
			continue
		}
		if err := c.Reset(ctx, cluster.Scope{Resource: r, Namespace: lab.DefaultNamespace}); err != nil {
			return fmt.Errorf("remove %s: %w", r, err)
		}
		if _, err := fmt.Fprintf(a.out, "removed %s and its objects\n", r); err != nil {
			return err
		}
	}
	return nil
}

// resetMachine removes what labs that were killed have left.
func (a *app) resetMachine() error {
	removed, err := embedded.RemoveLeftovers()
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
