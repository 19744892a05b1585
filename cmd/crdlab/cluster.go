package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab"
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
	onExisting = "existing"
)

var kindsOfClusters = []string{onEmbedded, onKind, onExisting}

// place says where a lab runs, and whose it is.
type place struct {
	cluster             string
	kindName, kindImage string
	target              // of crdlab serve, or a context of the user's own; instead of another cluster
	webhook             string
	yes                 bool
	learner             string
}

// flags adds them to a command.
func (p *place) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&p.cluster, "cluster", onEmbedded, "where to run: embedded is an API server within crdlab, kind a Kubernetes cluster in containers, existing one of your kubeconfig (--context)")
	f.StringVar(&p.kindName, "kind-name", kind.DefaultName, "the name of the kind cluster; it is made where it is not there")
	f.StringVar(&p.kindImage, "kind-image", "", "the image of its nodes, where it is made (default: kind's own)")
	p.target.flags(c, "the kubeconfig of a crdlab serve; with --context, of any cluster", "run on this context of your kubeconfig, or of --kubeconfig; you are asked before anything is written")
	f.StringVar(&p.webhook, "webhook-address", "", "HOST[:PORT] at which the API server of --context reaches this machine, for conversion webhooks")
	f.BoolVar(&p.yes, "yes", false, "do not ask before something is written to the cluster of --context")
	f.StringVar(&p.learner, "learner", "", "a name of yours, for an API group and a namespace of your own on a cluster of many")
	_ = c.RegisterFlagCompletionFunc("cluster", cobra.FixedCompletions(kindsOfClusters, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("learner", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("webhook-address", cobra.NoFileCompletions)
	checks(c, func([]string) error { return p.check(c.Flags().Changed) })
}

// check refuses flags that do not go together. A context implies --cluster existing.
func (p *place) check(given func(flag string) bool) error {
	if err := oneOf("--cluster", p.cluster, kindsOfClusters); err != nil {
		return err
	}
	if err := lab.CheckLearner(p.learner); err != nil {
		return usage("--learner %w", err)
	}
	switch {
	case given("learner") && p.learner == "":
		return usage("--learner is empty; give a name, for example ana, or leave it out for the lab without one")
	case p.cluster != onKind && (given("kind-name") || given("kind-image")):
		return usage("--kind-name and --kind-image are of --cluster kind; give that too")
	case p.context != "" && given("cluster") && p.cluster != onExisting:
		return usage("--context is of a cluster that is there already, and --cluster %s is another; give one of them", p.cluster)
	case p.cluster == onKind && p.kubeconfig != "":
		return usage("--kubeconfig is of a crdlab serve, and --cluster kind is another cluster; give one of them")
	case p.cluster == onExisting && p.context == "":
		return p.noContext()
	case p.context != "":
		p.cluster = onExisting
	case p.etcd.given():
		return usage("--etcd-... are of the cluster of --context; give --context NAME too")
	case p.webhook != "":
		return usage("--webhook-address is for the cluster of --context; give --context NAME too")
	}
	return nil
}

// noContext names the contexts that can be given.
func (p *place) noContext() error {
	what := "a context of your kubeconfig"
	if names := p.contexts(); len(names) > 0 {
		what = "one of " + orList(names)
	}
	return usage("--cluster existing needs a context; give --context NAME, %s", what)
}

// name is what a person calls the cluster.
func (p *place) name() string {
	if p.cluster == onExisting {
		return p.context
	}
	return p.cluster
}

// open starts an API server in a child process, takes up or makes a kind cluster, joins the server that a kubeconfig is of,
// or takes up the cluster that was agreed to. The way on is what to do where the child ends by itself.
func (p *place) open(ctx context.Context, wayOn string, onPhase func(cluster.Phase)) (cluster.Cluster, error) {
	switch {
	case p.kubeconfig != "" && p.context == "":
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
		return nil, fmt.Errorf("%s is not the kubeconfig of a crdlab server, and a lab touches no other cluster unless you name its context; "+
			"give --context too, or the file that crdlab serve --write-kubeconfig FILE makes", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// outlives says that the cluster goes on when the lab has ended.
func (p *place) outlives() bool { return p.kubeconfig != "" || p.cluster != onEmbedded }

// reset is the command that removes what the lab made there.
func (p *place) reset() string {
	out := "crdlab reset"
	if p.cluster == onKind {
		out += " --cluster kind"
		if p.kindName != kind.DefaultName {
			out += " --kind-name " + cluster.ShellWord(p.kindName)
		}
	}
	if p.context != "" {
		out += " --context " + cluster.ShellWord(p.context)
	}
	if p.kubeconfig != "" {
		out += " --kubeconfig " + cluster.ShellWord(p.kubeconfig)
	}
	if p.learner != "" {
		out += " --learner " + p.learner
	}
	return out
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
