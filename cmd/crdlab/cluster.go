package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
)

// closeTimeout is how long the end of a cluster may take. It is longer than the embedded server's own patience.
const closeTimeout = 10 * time.Second

// noticeTime is more than it takes until the end of a server is noticed.
const noticeTime = time.Second

// clusterFlag adds --cluster to a command.
func clusterFlag(c *cobra.Command) {
	kinds := []string{"embedded"}
	kind := c.Flags().String("cluster", kinds[0], "where to run: embedded is an API server within crdlab")
	_ = c.RegisterFlagCompletionFunc("cluster", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	checks(c, func([]string) error { return oneOf("--cluster", *kind, kinds) })
}

// openCluster starts an API server in a child process, or joins the one that a kubeconfig is of.
func openCluster(ctx context.Context, kubeconfig string) (cluster.Cluster, error) {
	if kubeconfig == "" {
		return embedded.Spawn(ctx, embedded.SpawnOptions{WayOn: "run it again"})
	}
	c, err := embedded.Attach(kubeconfig)
	if errors.Is(err, embedded.ErrNotCrdlab) {
		return nil, fmt.Errorf("%s is not the kubeconfig of a crdlab server, and a lab touches no other cluster; crdlab serve --write-kubeconfig FILE makes one", kubeconfig)
	}
	if err != nil {
		return nil, err // and no cluster.Cluster that holds a nil
	}
	return c, nil
}

// cutOff says why somebody was cut off whose server has ended by itself: that is noticed a little later than the cut.
func cutOff(ctx context.Context, c cluster.Cluster, err error) error {
	w, can := c.(cluster.Watchdog)
	if !can {
		return err
	}
	select {
	case <-w.Ended():
		return w.Err()
	case <-time.After(noticeTime):
	case <-ctx.Done():
	}
	return err
}

// closing ends something also where the context has ended, and within a time.
func closing(ctx context.Context, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return end(ctx)
}
