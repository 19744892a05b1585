package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/cluster/existing"
)

// target is a cluster that is there already: a context of a kubeconfig, and how its etcd is read.
type target struct {
	kubeconfig, context string
	etcd                etcdFlags
}

// etcdFlags say where etcd is, for those who can reach it.
type etcdFlags existing.Etcd

func (e etcdFlags) given() bool {
	return len(e.Endpoints) > 0 || e.CAFile != "" || e.CertFile != "" || e.KeyFile != "" || e.Prefix != ""
}

// flags adds them to a command.
func (t *target) flags(c *cobra.Command, kubeconfig, context string) {
	f := c.Flags()
	f.StringVar(&t.kubeconfig, "kubeconfig", "", kubeconfig)
	f.StringVar(&t.context, "context", "", context)
	f.StringSliceVar(&t.etcd.Endpoints, "etcd-endpoints", nil, "where the etcd of --context is (default: by etcdctl in its pod, if there is one)")
	f.StringVar(&t.etcd.CAFile, "etcd-cacert", "", "the file with the CA of that etcd")
	f.StringVar(&t.etcd.CertFile, "etcd-cert", "", "the file with a client's certificate for that etcd")
	f.StringVar(&t.etcd.KeyFile, "etcd-key", "", "the file with that certificate's key")
	f.StringVar(&t.etcd.Prefix, "etcd-prefix", "", "how the API server's keys begin (default: /registry)")
	_ = c.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return t.contexts(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = c.RegisterFlagCompletionFunc("etcd-endpoints", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("etcd-prefix", cobra.NoFileCompletions)
	for _, file := range []string{"kubeconfig", "etcd-cacert", "etcd-cert", "etcd-key"} {
		_ = c.MarkFlagFilename(file)
	}
}

// contexts are those of the kubeconfig, or none where it cannot be read.
func (t *target) contexts() []string {
	config, err := t.rules().Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// rules are kubectl's for finding the kubeconfig, but for the one that would move an old file to its new place.
func (t *target) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.MigrationRules = t.kubeconfig, nil
	return rules
}

// load reads the kubeconfig, and returns it with the name of the context that is meant. It never writes to it.
func (t *target) load() (*clientcmdapi.Config, string, error) {
	rules := t.rules()
	for _, path := range rules.GetLoadingPrecedence() {
		if _, err := embedded.ReadKubeconfig(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("%w; give --kubeconfig another file", err)
		}
	}
	raw, err := rules.Load()
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("there is no kubeconfig %s; give --kubeconfig a file that exists", t.kubeconfig)
		}
		return nil, "", fmt.Errorf("read the kubeconfig: %w; give --kubeconfig another file", err)
	}
	file := cmp.Or(t.kubeconfig, "your kubeconfig")
	names := slices.Sorted(maps.Keys(raw.Contexts))
	switch current := cmp.Or(t.context, raw.CurrentContext); {
	case len(names) == 0:
		return nil, "", usage("%s names no cluster; give --kubeconfig another file", file)
	case current == "":
		return nil, "", usage("%s has no current context; give --context one of %s", file, orList(names))
	case raw.Contexts[current] == nil:
		return nil, "", usage("the kubeconfig has no context %q%s; kubectl config get-contexts lists them", current, didYouMean(current, names))
	default:
		return raw, current, nil
	}
}

// connect reaches the cluster, and changes nothing there: as a crdlab server where the kubeconfig is one's, with its bytes.
// Namespace is that of the lab.
func (t *target) connect(ctx context.Context, namespace, webhook string) (cluster.Cluster, error) {
	config, name, err := t.load()
	if err != nil {
		return nil, err
	}
	if t.kubeconfig != "" && name == config.CurrentContext && !t.etcd.given() {
		c, err := embedded.Attach(t.kubeconfig)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, embedded.ErrNotCrdlab) {
			return nil, err
		}
	}
	c, err := existing.Connect(ctx, existing.Options{Kubeconfig: config, Context: name, Namespace: namespace,
		Etcd: existing.Etcd(t.etcd), Webhook: webhook})
	if err != nil {
		return nil, err
	}
	return c, nil
}
