package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/cluster/kind"
)

// closeTimeout is how long the end of a cluster may take. It is longer than the embedded server's own patience.
const closeTimeout = 10 * time.Second

// noticeTime is more than it takes until the end of a server is noticed.
const noticeTime = time.Second

// Kinds of clusters that a lab runs on.
const (
	onEmbedded = "embedded"
	onKind     = "kind"
)

// place says where a lab runs.
type place struct {
	cluster             string
	kindName, kindImage string
	kubeconfig          string // of a crdlab serve; instead of a cluster
}

// flags adds them to a command.
func (p *place) flags(c *cobra.Command) {
	kinds := []string{onEmbedded, onKind}
	c.Flags().StringVar(&p.cluster, "cluster", onEmbedded, "where to run: embedded is an API server within crdlab, kind a Kubernetes cluster in containers")
	c.Flags().StringVar(&p.kindName, "kind-name", kind.DefaultName, "the name of the kind cluster; it is made where it is not there")
	c.Flags().StringVar(&p.kindImage, "kind-image", "", "the image of its nodes, where it is made (default: kind's own)")
	_ = c.RegisterFlagCompletionFunc("cluster", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	checks(c, func([]string) error {
		if p.cluster == onKind && p.kubeconfig != "" {
			return usage("--kubeconfig is of a crdlab serve, and --cluster kind is another cluster; give one of them")
		}
		return oneOf("--cluster", p.cluster, kinds)
	})
}

// open starts an API server in a child process, takes up or makes a kind cluster, or joins the server that a kubeconfig
// is of. The way on is what to do where the child ends by itself.
func (p *place) open(ctx context.Context, wayOn string, onPhase func(cluster.Phase)) (cluster.Cluster, error) {
	switch {
	case p.kubeconfig != "":
		return joined(p.kubeconfig)
	case p.cluster == onKind:
		k, err := kind.Create(ctx, kind.Options{Name: p.kindName, Image: p.kindImage, OnPhase: onPhase})
		if err != nil {
			return nil, err // and no cluster.Cluster that holds a nil
		}
		return k, nil
	}
	e, err := embedded.Spawn(ctx, embedded.SpawnOptions{WayOn: wayOn, OnPhase: onPhase})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func joined(kubeconfig string) (cluster.Cluster, error) {
	c, err := embedded.Attach(kubeconfig)
	if errors.Is(err, embedded.ErrNotCrdlab) {
		return nil, fmt.Errorf("%s is not the kubeconfig of a crdlab server, and a lab touches no other cluster; crdlab serve --write-kubeconfig FILE makes one", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// outlives says that the cluster goes on when the lab has ended.
func (p *place) outlives() bool { return p.kubeconfig != "" || p.cluster == onKind }

// reset is the command that removes what the lab made there.
func (p *place) reset() string {
	switch {
	case p.kubeconfig != "":
		return "crdlab reset --kubeconfig " + cluster.ShellWord(p.kubeconfig)
	case p.kindName != kind.DefaultName:
		return "crdlab reset --cluster kind --kind-name " + cluster.ShellWord(p.kindName)
	}
	return "crdlab reset --cluster kind"
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
