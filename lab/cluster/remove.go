package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/crdlab/crdlab/lab/storage"
)

// ErrForeign says that something was not made by crdlab, which therefore leaves it alone.
var ErrForeign = errors.New("not made by crdlab")

// ManagedBy is the label of what the lab made, and Maker its value.
const (
	ManagedBy = "app.kubernetes.io/managed-by"
	Maker     = "crdlab"
)

const (
	// removeInterval is how often it is looked whether a removal has got further, removeTimeout how long it may take.
	removeInterval = 20 * time.Millisecond
	removeTimeout  = 90 * time.Second
	// nudgeInterval is when the server is reminded of a removal that does not get on.
	nudgeInterval = 2 * time.Second
)

// Remove deletes a CRD, its objects and its migrations through the API, whatever state they are in, and returns when they are gone; one
// that is not there is no error. It is ErrForeign if the CRD does not carry the label that the lab gives to what it makes.
// Where the bytes cannot be read, objects may be stored at any of the versions given.
func Remove(ctx context.Context, c Cluster, resource storage.Resource, versions ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removeTimeout, errors.New("not done after "+removeTimeout.String()))
	defer cancel()
	definitions, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("reset: make a client: %w", err)
	}
	objects, err := metadata.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("reset: make a client: %w", err)
	}
	if err := RemoveMigrations(ctx, c, resource); err != nil { // one that goes on would write what is being deleted
		return fmt.Errorf("reset %s: %w", resource, err)
	}
	r := &removal{cluster: c, crds: definitions.CustomResourceDefinitions(), objects: objects, resource: resource, versions: versions}
	if err := r.run(ctx); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reset %s: %w", resource, err)
	}
	return nil
}

// removal is the removing of one CRD. Each of its steps returns a NotFound if the CRD is gone.
type removal struct {
	cluster  Cluster
	crds     apiextensions.CustomResourceDefinitionInterface
	objects  metadata.Interface
	resource storage.Resource
	versions []string // at which objects may be stored
}

func (r *removal) run(ctx context.Context) error {
	crd, err := r.crds.Get(ctx, r.resource.String(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if crd.Labels[ManagedBy] != Maker {
		return fmt.Errorf("the CRD has no label %s=%s: %w; remove it yourself, or use another group", ManagedBy, Maker, ErrForeign)
	}
	if !r.healthy(ctx, crd) {
		if crd, err = r.mend(ctx, crd.UID); err != nil {
			return fmt.Errorf("make its objects readable: %w", err)
		}
	}
	// Before, because the server looks but every five seconds whether the last object has gone.
	err = poll(ctx, func() error { return r.releaseObjects(ctx, crd) })
	if apierrors.IsInvalid(err) { // an object that its own schema refuses
		if crd, err = r.mend(ctx, crd.UID); err == nil {
			err = poll(ctx, func() error { return r.releaseObjects(ctx, crd) })
		}
	}
	if err != nil {
		return err
	}
	uid := crd.UID
	err = r.crds.Delete(ctx, crd.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		return fmt.Errorf("delete it: %w", err)
	}
	last := time.Now()
	return poll(ctx, func() error {
		if _, err := r.get(ctx, uid); err != nil {
			return err
		}
		if err := r.releaseObjects(ctx, crd); err != nil { // what was created in between
			return err
		}
		if time.Since(last) > nudgeInterval {
			last = time.Now()
			return errors.Join(errNotYet, r.nudge(ctx))
		}
		return errNotYet
	})
}

// nudge changes the CRD, so that the server looks at it again: after a failure it does so by itself only after a while
// that doubles each time, and it may have seen its own write last.
func (r *removal) nudge(ctx context.Context) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"crdlab.dev/removal":%q}}}`, time.Now().UTC().Format(time.RFC3339Nano))
	_, err := r.crds.Patch(ctx, r.resource.String(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// get reads the CRD; another one of the same name is as good as none.
func (r *removal) get(ctx context.Context, uid types.UID) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := r.crds.Get(ctx, r.resource.String(), metav1.GetOptions{})
	if err == nil && crd.UID != uid {
		return nil, apierrors.NewNotFound(apiextensionsv1.Resource("customresourcedefinitions"), crd.Name)
	}
	return crd, err
}

// mend makes every object of the CRD readable, so that the server can delete it: no webhook that may be gone, every
// version that something is stored at, and no schema that an object could break. What is left is deleted anyway.
func (r *removal) mend(ctx context.Context, uid types.UID) (crd *apiextensionsv1.CustomResourceDefinition, err error) {
	stored, err := r.storedVersions(ctx)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, func() error {
		if crd, err = r.get(ctx, uid); err != nil {
			return err
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		crd.Spec.PreserveUnknownFields = false
		mendVersions(&crd.Spec, append(stored, crd.Status.StoredVersions...))
		crd, err = r.crds.Update(ctx, crd, metav1.UpdateOptions{})
		return err
	})
	return crd, err
}

// healthy says that the server can read and delete all objects of a CRD as it is. Then it is left so: a change right before
// the deletion would make the server begin again with all that it keeps of the CRD.
func (r *removal) healthy(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) bool {
	stored, err := r.storedVersions(ctx)
	if err != nil {
		return false
	}
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || crd.DeletionTimestamp != nil {
		return false
	}
	there := map[string]bool{}
	for _, v := range crd.Spec.Versions {
		there[v.Name] = true
		if v.Storage && !v.Served {
			return false
		}
	}
	for _, v := range append(stored, crd.Status.StoredVersions...) {
		if !there[v] {
			return false
		}
	}
	return true
}

// storedVersions are the versions in the stored values; the CRD's own record may be wrong. Where the values cannot be read,
// they are all that are possible.
func (r *removal) storedVersions(ctx context.Context) ([]string, error) {
	reader, err := r.cluster.Storage()
	if errors.Is(err, storage.ErrNoAccess) {
		return slices.Clone(r.versions), nil
	} else if err != nil {
		return nil, err
	}
	defer reader.Close()
	counts, err := storage.Count(ctx, reader, r.resource)
	versions := slices.Collect(maps.Keys(counts.ByVersion))
	if errors.Is(err, storage.ErrNoAccess) { // one that it cannot read does not hide those before it
		return append(versions, r.versions...), nil
	}
	return versions, err
}

// mendVersions adds the versions that are missing, unserved, serves the storage version, and lifts every schema.
func mendVersions(spec *apiextensionsv1.CustomResourceDefinitionSpec, needed []string) {
	there := map[string]bool{}
	for _, v := range spec.Versions {
		there[v.Name] = true
	}
	for _, name := range needed {
		if !there[name] {
			there[name] = true
			spec.Versions = append(spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name})
		}
	}
	anything := true
	for i := range spec.Versions {
		v := &spec.Versions[i]
		v.Served = v.Served || v.Storage
		v.SelectableFields = nil // they must be in the schema
		v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &anything,
		}}
	}
}

// releaseObjects takes the finalizers off the objects: nobody is left who would.
func (r *removal) releaseObjects(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	objects := r.objects.Resource(storageVersion(crd))
	for options := (metav1.ListOptions{Limit: 500}); ; {
		page, err := objects.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil // it is not served, because it never was or is gone
		} else if err != nil {
			return fmt.Errorf("list its objects: %w", err)
		}
		for _, o := range page.Items {
			if len(o.Finalizers) == 0 {
				continue
			}
			_, err := objects.Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("take the finalizers off %s/%s: %w", o.Namespace, o.Name, err)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionResource {
	gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			gvr.Version = v.Name
		}
	}
	return gvr
}

// errNotYet says that nothing is wrong, only not done.
var errNotYet = errors.New("it is still being deleted")

// poll tries again while the server is only not ready yet, until the context ends; then it says what was the matter.
func poll(ctx context.Context, try func() error) error { return pollEvery(ctx, removeInterval, try) }

func pollEvery(ctx context.Context, interval time.Duration, try func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := try()
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
	}
}

// passing tells what goes by: another's write came first, or the server has not yet taken the change of the CRD in.
func passing(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusConflict || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return errors.Is(err, errNotYet)
}
