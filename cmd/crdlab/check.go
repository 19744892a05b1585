package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// checkFlags say where a CRD is, and which versions of it are to be dropped.
type checkFlags struct {
	kubeconfig, context string
	drop                []string
	format              string
}

func (a *app) check() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check CRD",
		Short: "Is the migration complete, so that a version may be dropped?",
		Long: "Answers from the stored bytes and from the server, never from what\n" +
			"status.storedVersions declares. It only reads, and asks for dry runs. Where the\n" +
			"bytes cannot be read, the answer is unknown at best. Exit code 0: complete;\n" +
			"1: incomplete; 3: unknown; 2: it could not be looked at.\n\n" +
			"A cluster must be named, with --kubeconfig or with --context of your own\n" +
			"kubeconfig. With the kubeconfig of crdlab serve the bytes are read.\n\n" +
			"Without --drop it asks of the migration to the newest version, as Kubernetes\n" +
			"orders them, that is served or stored at; all others are to be dropped.",
		Example: "crdlab check widgets.lab.example.com --kubeconfig /tmp/kubeconfig",
		Args:    arguments(1, 1, "the name of a CRD"),
		RunE: func(c *cobra.Command, args []string) error {
			plural, group, ok := strings.Cut(args[0], ".")
			if !ok || plural == "" || group == "" {
				return usage("%q is no name of a CRD; give PLURAL.GROUP, for example widgets.lab.example.com", args[0])
			}
			if f.kubeconfig == "" && f.context == "" {
				return usage("no cluster is named; give --kubeconfig FILE or --context NAME")
			}
			if c.Flags().Changed("drop") && len(f.drop) == 0 {
				return usage("--drop names no version; give one, for example --drop v1alpha1")
			}
			for _, v := range f.drop {
				if wrong := validation.IsDNS1035Label(v); len(wrong) > 0 {
					return usage("--drop %q is no name of a version; give one as it stands in spec.versions, for example v1alpha1", v)
				}
			}
			return a.checkCRD(c.Context(), storage.Resource{Group: group, Plural: plural}, f)
		},
	}
	c.Flags().StringSliceVar(&f.drop, "drop", nil, "a version to be dropped; may be repeated (default: all but the newest)")
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig of the cluster")
	c.Flags().StringVar(&f.context, "context", "", "a context of the kubeconfig; without --kubeconfig, of your own")
	outputFlag(c, &f.format, formatText, formatJSON)
	return c
}

func (a *app) checkCRD(ctx context.Context, resource storage.Resource, f checkFlags) (err error) {
	config, from, end, err := reach(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(ctx)) }()
	client, err := evidence.NewClient(config, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	v, err := verdict.Of(ctx, verdict.Query{Client: client, Storage: from, Resource: resource, Drop: f.drop})
	if err != nil {
		return err
	}
	if f.format == formatJSON {
		err = report.WriteJSON(a.out, report.NewVerdict(v))
	} else {
		err = a.text().Verdict(v)
	}
	if err != nil {
		return err
	}
	return done(report.VerdictExitCode(v.Verdict))
}

// reach returns how a cluster is read: its API, and its stored values where it is a crdlab server's. The function that
// it returns ends that.
func reach(f checkFlags) (*rest.Config, storage.Reader, func(context.Context) error, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	raw, err := loaded.RawConfig()
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil, nil, fmt.Errorf("there is no kubeconfig %s; give --kubeconfig a file that exists", f.kubeconfig)
		}
		return nil, nil, nil, fmt.Errorf("read the kubeconfig: %w; give --kubeconfig another file", err)
	}
	if f.context != "" && raw.Contexts[f.context] == nil {
		var names []string
		for name := range raw.Contexts {
			names = append(names, name)
		}
		return nil, nil, nil, usage("the kubeconfig has no context %q%s; kubectl config get-contexts lists them", f.context, didYouMean(f.context, names))
	}
	if f.kubeconfig != "" && (f.context == "" || f.context == raw.CurrentContext) {
		c, err := embedded.Attach(f.kubeconfig)
		if err == nil {
			from, err := c.Storage()
			return c.Config(), from, c.Close, err
		}
		if !errors.Is(err, embedded.ErrNotCrdlab) {
			return nil, nil, nil, err
		}
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read the kubeconfig: %w; give --kubeconfig another file, or --context", err)
	}
	return config, nil, func(context.Context) error { return nil }, nil
}
