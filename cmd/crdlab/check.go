package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		Example: "crdlab check widgets.lab.example.com --kubeconfig lab.kubeconfig",
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
			for i, v := range f.drop {
				v = strings.TrimSpace(v)
				f.drop[i] = v
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
		return lookFailed(ctx, client, resource, err)
	}
	if err := misspelt(v); err != nil {
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

// lookFailed says what to do about what kept a verdict from being given.
func lookFailed(ctx context.Context, client *evidence.Client, resource storage.Resource, err error) error {
	var network *net.OpError
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &network):
		return fmt.Errorf("%w; start the cluster, or name another one with --kubeconfig or --context", err)
	case errors.As(err, &answer) && apierrors.IsNotFound(err) && answer.Status().Details != nil && answer.Status().Details.Name == resource.String():
		return usage("the cluster has no CRD %s%s; kubectl get crd lists those that there are", resource,
			didYouMean(resource.String(), definitions(ctx, client)))
	}
	return err
}

// definitions are the names of all CRDs; none where they may not be listed.
func definitions(ctx context.Context, client *evidence.Client) (names []string) {
	r, err := client.As(evidence.ByObserver).Do(ctx, evidence.Request{Method: http.MethodGet, Path: evidence.DefinitionsPath, Accept: metadataOnly})
	var list metav1.PartialObjectMetadataList
	if err == nil && json.Unmarshal(r.Body, &list) == nil {
		for _, crd := range list.Items {
			names = append(names, crd.Name)
		}
	}
	return names
}

// metadataOnly asks for a list without what may be megabytes of schemas.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// misspelt refuses a version to be dropped that nothing names while one of almost that name is still there: that nothing
// names it would be taken for the end of a migration. Names that differ in their numbers alone are those of two versions.
func misspelt(v *verdict.Verdict) error {
	for _, d := range v.Drop {
		if slices.Contains(v.Named, d) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(v.Named), func(n string) bool {
			return numbers.ReplaceAllString(n, "0") == numbers.ReplaceAllString(d, "0")
		})
		if meant := didYouMean(d, others); meant != "" {
			return usage("the CRD has no version %q%s", d, meant)
		}
	}
	return nil
}

var numbers = regexp.MustCompile("[0-9]+")

// reach returns how a cluster is read: its API, and its stored values where it is a crdlab server's. The function that
// it returns ends that.
func reach(f checkFlags) (*rest.Config, storage.Reader, func(context.Context) error, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	for _, path := range rules.GetLoadingPrecedence() {
		if _, err := embedded.ReadKubeconfig(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, nil, fmt.Errorf("%w; give --kubeconfig another file", err)
		}
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	raw, err := loaded.RawConfig()
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil, nil, fmt.Errorf("there is no kubeconfig %s; give --kubeconfig a file that exists", f.kubeconfig)
		}
		return nil, nil, nil, fmt.Errorf("read the kubeconfig: %w; give --kubeconfig another file", err)
	}
	names := slices.Sorted(maps.Keys(raw.Contexts))
	switch current := cmp.Or(f.context, raw.CurrentContext); {
	case current == "" && len(names) == 0:
		return nil, nil, nil, usage("%s names no cluster; give --kubeconfig another file", f.kubeconfig)
	case current == "":
		return nil, nil, nil, usage("%s has no current context; give --context one of %s", f.kubeconfig, orList(names))
	case raw.Contexts[current] == nil:
		return nil, nil, nil, usage("the kubeconfig has no context %q%s; kubectl config get-contexts lists them", current, didYouMean(current, names))
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
