package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

const (
	kind = "BenchWidget"
	// prefix begins the names of the objects. The canary is the first of them all, and is only read.
	prefix  = "crdlab-bench-"
	canary  = prefix + "0"
	manager = "crdlab-bench"

	// healthyWithin is how long the server may take until all is well, removeWithin to remove everything at the end.
	healthyWithin = 45 * time.Second
	removeWithin  = 2 * time.Minute
	pollInterval  = 10 * time.Millisecond
)

// The server's cache of a version tries again for half a minute after the first event that it cannot convert, and then
// begins anew: so long the watches stay open, and no longer. A row that began in time is over before.
const renewAfter = 20 * time.Second

// bench is a Scene at work.
type bench struct {
	Scene
	resource storage.Resource
	fresh    time.Time // since when the server has had its caches
}

// build makes the CRD and waits until it serves; what an earlier bench left is removed.
func (b *bench) build(ctx context.Context) error {
	if err := b.Webhook.SetFault(conversion.Fault{}); err != nil {
		return err
	}
	if _, err := Remove(ctx, b.Cluster, b.resource.Group); err != nil {
		return err
	}
	body, err := json.Marshal(b.definition())
	if err != nil {
		return err
	}
	if err := accepted(b.Client.Create(ctx, evidence.DefinitionsPath, manager, body)); err != nil {
		return err
	}
	err = b.until(ctx, "the CRD is served", func() (bool, error) { return b.answers(ctx, b.collection(Stored), nil) })
	if err != nil {
		return err
	}
	b.fresh = time.Now()
	return b.create(ctx, canary)
}

// renew makes the server begin with new caches, where the old ones have been through much.
func (b *bench) renew(ctx context.Context) error {
	if time.Since(b.fresh) < renewAfter {
		return nil
	}
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"as of %d"}]`, time.Now().UnixNano())
	return b.changing(ctx, func() error {
		return accepted(b.Client.Patch(ctx, evidence.DefinitionPath(b.resource), evidence.JSONPatch, manager, patch))
	})
}

// changing does a change of the CRD's spec, and waits until the server has given up the caches of before: until then they
// go on to ask the webhook, and the reviews could not be told apart. Their watches end with them.
func (b *bench) changing(ctx context.Context, change func() error) error {
	watching, cancel := context.WithTimeoutCause(ctx, healthyWithin, errors.New("the server did not end the watches of before"))
	defer cancel()
	var ends []<-chan struct{}
	for _, at := range []string{Stored, Other} {
		ended, err := b.Client.WatchEnds(watching, b.collection(at))
		if err != nil {
			return err
		}
		ends = append(ends, ended)
	}
	if err := change(); err != nil {
		return err
	}
	for _, ended := range ends {
		<-ended
	}
	b.fresh = time.Now()
	return context.Cause(watching)
}

// remove heals the webhook and removes the CRD with its objects, also where the context has ended.
func (b *bench) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	healing := b.Webhook.SetFault(conversion.Fault{})
	_, err := Remove(ctx, b.Cluster, b.resource.Group)
	if err := errors.Join(healing, err); err != nil {
		return fmt.Errorf("remove the bench: %w; crdlab reset removes what is left", err)
	}
	return nil
}

// Remove removes what a bench that was killed has left in a group, and says whether there was anything.
func Remove(ctx context.Context, c cluster.Cluster, group string) (bool, error) {
	crds, err := metadata.NewForConfig(c.Config())
	if err != nil {
		return false, fmt.Errorf("remove what a bench left: %w", err)
	}
	resource := Resource(group)
	_, err = crds.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Get(ctx, resource.String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the CRD %s: %w", resource, err)
	}
	return true, cluster.Remove(ctx, c, resource)
}

// Owns says whether a conversion is of objects of a bench.
func Owns(c evidence.Conversion) bool {
	return len(c.Names) > 0 && !slices.ContainsFunc(c.Names, func(name string) bool {
		return !strings.HasPrefix(name[strings.LastIndex(name, "/")+1:], prefix)
	})
}

// definition is a CRD whose versions call one field by different names; its objects are stored at the Stored version.
func (b *bench) definition() *apiextensionsv1.CustomResourceDefinition {
	version := func(name, field string) apiextensionsv1.CustomResourceDefinitionVersion {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			field: {Type: "string"}, "replicas": {Type: "integer"},
		}}
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: name == b.Stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
			}}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: b.resource.String(), Labels: b.Lab.Labels()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:      b.resource.Group,
			Scope:      apiextensionsv1.NamespaceScoped,
			Names:      apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: Plural, Singular: "benchwidget"},
			Conversion: b.Webhook.Conversion(),
			Versions:   []apiextensionsv1.CustomResourceDefinitionVersion{version(b.Stored, field(Stored)), version(b.Other, field(Other))},
		},
	}
}

// field is what a version calls the field that has two names.
func field(at string) string {
	if at == Stored {
		return "label"
	}
	return "displayName"
}

// version is the name of the version meant by Stored or Other.
func (b *bench) version(at string) string {
	if at == Stored {
		return b.Stored
	}
	return b.Other
}

func (b *bench) collection(at string) string {
	return evidence.CollectionPath(b.resource, b.version(at), b.Lab.Namespace)
}

func (b *bench) object(at, name string) string {
	return evidence.ObjectPath(b.resource, b.version(at), b.Lab.Namespace, name)
}

// widget is an object as a client would send it at a version.
func (b *bench) widget(at, name string) map[string]any {
	return map[string]any{
		"apiVersion": b.resource.Group + "/" + b.version(at),
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": b.Lab.Namespace, "labels": b.Lab.Labels()},
		"spec":       map[string]any{field(at): "hello", "replicas": 1},
	}
}

// create creates an object through the stored version.
func (b *bench) create(ctx context.Context, name string) error {
	body, err := json.Marshal(b.widget(Stored, name))
	if err != nil {
		return err
	}
	return accepted(b.Client.Create(ctx, b.collection(Stored), manager, body))
}

// healthy waits until the server reads and lists at both versions as if nothing had ever been wrong.
func (b *bench) healthy(ctx context.Context) error {
	return b.until(ctx, "all is well", func() (bool, error) {
		for _, ask := range []struct {
			path  string
			query url.Values
		}{
			{b.object(Other, canary), nil},
			{b.collection(Stored), cached}, {b.collection(Other), cached},
			{b.collection(Stored), page}, {b.collection(Other), page},
		} {
			if well, err := b.answers(ctx, ask.path, ask.query); !well || err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// answers says whether a GET is answered with 200, within the bench's patience.
func (b *bench) answers(ctx context.Context, path string, query url.Values) (bool, error) {
	patient, cancel := context.WithTimeout(ctx, b.Patience)
	defer cancel()
	resp, err := b.Client.Get(patient, path, query)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return err == nil && resp.Status == http.StatusOK, nil
}

// until waits for a condition.
func (b *bench) until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, healthyWithin, fmt.Errorf("waited %s in vain until %s", healthyWithin, what))
	defer cancel()
	for {
		if yes, err := holds(); yes || err != nil {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func accepted(resp *evidence.Response, err error) error {
	if err != nil {
		return err
	}
	return resp.Err()
}
