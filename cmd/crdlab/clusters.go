package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/kind"
)

// clusters is crdlab cluster: the kind cluster by itself.
func (a *app) clusters() *cobra.Command {
	c := &cobra.Command{
		Use:     "cluster create|list|kubeconfig|delete",
		Short:   "The lab's kind cluster",
		Example: "crdlab cluster create",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command \"cluster %s\"; crdlab cluster --help lists them", args[0])
			}
			return usage("what of the cluster? crdlab cluster --help lists the commands")
		},
	}
	c.AddCommand(a.createCluster(), a.listClusters(), a.clusterKubeconfig(), a.deleteCluster())
	return c
}

func nameFlag(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "kind-name", kind.DefaultName, "the name of the kind cluster")
}

func (a *app) createCluster() *cobra.Command {
	var name, image string
	c := &cobra.Command{
		Use:     "create",
		Short:   "Make it, or start it again",
		Example: "crdlab cluster create",
		Args:    arguments(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			progress := a.progress()
			defer progress.end()
			k, err := kind.Create(c.Context(), kind.Options{Name: name, Image: image, OnPhase: func(p cluster.Phase) { progress.say(p.Name) }})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closing(c.Context(), k.Close)) }()
			progress.end()
			path, _ := k.Kubeconfig()
			_, err = fmt.Fprintf(a.out, "The kind cluster %s runs Kubernetes %s.\nexport KUBECONFIG=%s\n", name, k.Info().Version, cluster.ShellWord(path))
			return err
		},
	}
	nameFlag(c, &name)
	c.Flags().StringVar(&image, "kind-image", "", "the image of its nodes (default: kind's own)")
	return c
}

func (a *app) listClusters() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "The kind clusters on this machine",
		Example: "crdlab cluster list",
		Args:    arguments(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := kind.List(c.Context())
			if err != nil {
				return err
			}
			for _, name := range names {
				if _, err := fmt.Fprintln(a.out, name); err != nil {
					return err
				}
			}
			if len(names) == 0 {
				a.note("There is no kind cluster; crdlab cluster create makes one.")
			}
			return nil
		},
	}
}

func (a *app) clusterKubeconfig() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Where its kubeconfig is",
		Example: "export KUBECONFIG=$(crdlab cluster kubeconfig)",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			path, err := kind.Kubeconfig(name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, path)
			return err
		},
	}
	nameFlag(c, &name)
	return c
}

func (a *app) deleteCluster() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:     "delete",
		Short:   "Remove it, with everything on it",
		Example: "crdlab cluster delete",
		Args:    arguments(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := kind.Delete(c.Context(), name); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "removed the kind cluster %s\n", name)
			return err
		},
	}
	nameFlag(c, &name)
	return c
}
