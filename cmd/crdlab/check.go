package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// checkFlags say where a CRD is, and which versions of it are to be dropped.
type checkFlags struct {
	target
	drop   []string
	format string
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
			"kubeconfig. The bytes are read with the kubeconfig of crdlab serve, through\n" +
			"etcdctl in the cluster's own etcd pod, or from --etcd-endpoints.\n\n" +
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
	f.target.flags(c, "the kubeconfig of the cluster", "a context of the kubeconfig; without --kubeconfig, of your own")
	outputFlag(c, &f.format, formatText, formatJSON)
	return c
}

func (a *app) checkCRD(ctx context.Context, resource storage.Resource, f checkFlags) (err error) {
	c, err := f.connect(ctx, "", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(ctx, c.Close)) }()
	from, err := stored(c)
	if err != nil {
		return err
	}
	client, err := evidence.NewClient(c.Config(), nil)
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

// stored opens the stored values; where they cannot be read, what it returns says why to whoever asks.
func stored(c cluster.Cluster) (storage.Reader, error) {
	from, err := c.Storage()
	if errors.Is(err, storage.ErrNoAccess) {
		return storage.Without(err), nil
	}
	return from, err
}
