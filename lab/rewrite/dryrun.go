package rewrite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
)

// DefaultSample is how many objects DryRun looks at where the Rewriter does not say.
const DefaultSample = 20

// Loss is what a rewrite would do to one object that it ought not to do.
type Loss struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version is where the loss shows: the version of the view that would be another afterwards.
	Version string   `json:"version"`
	Fields  []string `json:"fields,omitempty"`  // their paths; they would be gone, or have another value
	Refused string   `json:"refused,omitempty"` // the server would not write it, and why
}

// DryRun asks the server what a rewrite to target would do, and compares: before anything is written, it finds objects
// that would be refused, or whose fields would be lost. It looks at a sample, spread over all objects.
func (r *Rewriter) DryRun(ctx context.Context, target string) ([]Loss, error) {
	crd, err := Definition(ctx, r.Client.As(evidence.ByProbe), r.Resource)
	if err == nil {
		err = ready(crd, target)
	}
	var sample []Subject
	if err == nil {
		sample, err = r.sample(ctx, target)
	}
	var losses []Loss
	for _, s := range sample {
		var loss *Loss
		if loss, err = RoundTrip(ctx, r.Client.As(evidence.ByProbe), crd, s); err != nil {
			break
		}
		if loss != nil {
			losses = append(losses, *loss)
		}
	}
	if err != nil {
		return losses, fmt.Errorf("try the rewrite of %s: %w", r.Resource, err)
	}
	return losses, nil
}

// Subject is an object to be looked at.
type Subject struct {
	Namespace, Name string
	Stored          string          // its stored version; empty where it is not known
	Bytes           json.RawMessage // its stored value; nil where it is not known
}

// sample takes every n-th object that is to be rewritten.
func (r *Rewriter) sample(ctx context.Context, target string) ([]Subject, error) {
	var all []Subject
	_, _, err := r.each(ctx, target, func(o *seen) error {
		if o.stored != target {
			all = append(all, Subject{Namespace: o.namespace, Name: o.name, Stored: o.stored})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := min(len(all), cmp.Or(r.Sample, DefaultSample))
	chosen := make([]Subject, n)
	for i := range chosen {
		chosen[i] = all[i*len(all)/n]
		if r.Storage == nil {
			continue
		}
		if v, err := r.Storage.Get(ctx, r.Resource, chosen[i].Namespace, chosen[i].Name); err == nil {
			chosen[i].Bytes = v.Data
		}
	}
	return chosen, nil
}

// RoundTrip asks by dry runs what a rewrite would do to an object; nil where it would lose nothing, or the object is
// gone. A dry run of an empty patch at a version converts the object to the storage version and back: what is missing in
// its answer would be lost. Where the stored version cannot be asked for, the bytes are compared to what would be read at
// the storage version, as far as strategy None lets both have the same fields.
func RoundTrip(ctx context.Context, client *evidence.Client, crd *apiextensionsv1.CustomResourceDefinition, s Subject) (*Loss, error) {
	target := StorageVersion(crd)
	loss := &Loss{Namespace: s.Namespace, Name: s.Name, Version: target}
	written, err := dryRun(ctx, client, crd, target, s)
	if err != nil || written == nil || written.Refused() {
		return refusedLoss(loss, written), err
	}
	for _, v := range crd.Spec.Versions {
		if !v.Served || v.Name == target || (s.Stored != "" && s.Stored != v.Name) {
			continue
		}
		loss.Version = v.Name
		before, err := client.Get(ctx, objectPath(crd, v.Name, s), nil)
		if err != nil || before.Refused() {
			return refusedLoss(loss, before), err
		}
		after, err := dryRun(ctx, client, crd, v.Name, s)
		if err != nil || after == nil || after.Refused() {
			return refusedLoss(loss, after), err
		}
		if loss.Fields = lost(before.Body, after.Body); loss.Fields != nil {
			return loss, nil
		}
	}
	if s.Bytes != nil && converts(crd) == apiextensionsv1.NoneConverter {
		loss.Version = target
		if loss.Fields = lost(s.Bytes, written.Body); loss.Fields != nil {
			return loss, nil
		}
	}
	return nil, nil
}

// refusedLoss is the loss where the server refuses to read or write an object; nil where there is no object.
func refusedLoss(loss *Loss, resp *evidence.Response) *Loss {
	if resp == nil || absent(resp) {
		return nil
	}
	loss.Refused = strings.TrimSpace(strconv.Itoa(resp.Status)+" "+resp.Reason) + ": " + resp.Message
	return loss
}

func converts(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.ConversionStrategyType {
	if crd.Spec.Conversion == nil {
		return apiextensionsv1.NoneConverter
	}
	return crd.Spec.Conversion.Strategy
}

func dryRun(ctx context.Context, client *evidence.Client, crd *apiextensionsv1.CustomResourceDefinition, version string, s Subject) (*evidence.Response, error) {
	return client.Do(ctx, evidence.Request{
		Method:      http.MethodPatch,
		Path:        objectPath(crd, version, s),
		Query:       url.Values{"dryRun": {"All"}},
		ContentType: evidence.MergePatch,
		Body:        []byte("{}"),
	})
}

func objectPath(crd *apiextensionsv1.CustomResourceDefinition, version string, s Subject) string {
	return evidence.ObjectPath(resourceOf(crd), version, s.Namespace, s.Name)
}

// lost are the paths of fields that were in an object and are not, or not with that value, in another form of it. What
// every write may change is left out.
func lost(before, after []byte) []string {
	was, is := leaves(before), leaves(after)
	var out []string
	for path, value := range was {
		if now, there := is[path]; !there || !reflect.DeepEqual(now, value) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// leaves are the values of an object that hold no others, by their paths.
func leaves(object []byte) map[string]any {
	var m map[string]any
	if json.Unmarshal(object, &m) != nil {
		return nil
	}
	delete(m, "apiVersion")
	if meta, ok := m["metadata"].(map[string]any); ok {
		maps.DeleteFunc(meta, func(field string, _ any) bool {
			return field == "managedFields" || field == "resourceVersion" || field == "generation"
		})
	}
	out := map[string]any{}
	collect(out, "", m)
	return out
}

func collect(into map[string]any, path string, at any) {
	switch at := at.(type) {
	case map[string]any:
		for field, value := range at {
			collect(into, strings.TrimPrefix(path+"."+field, "."), value)
		}
		if len(at) > 0 {
			return
		}
	case []any:
		for i, value := range at {
			collect(into, path+"["+strconv.Itoa(i)+"]", value)
		}
		if len(at) > 0 {
			return
		}
	}
	into[path] = at
}
