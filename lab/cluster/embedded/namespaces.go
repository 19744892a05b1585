package embedded

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/names"
)

// Namespace is where the kubeconfig's context points to. It and default exist from the start.
const Namespace = "crdlab"

// Namespaces are served from the libraries' own registry, so that they behave in kubectl's hands as in a full cluster:
// created, applied, labelled, watched, deleted. Two things they are not: a custom resource needs none to be created in,
// and deleting one removes nothing that is in it.
var (
	coreScheme = runtime.NewScheme()
	coreCodecs = serializer.NewCodecFactory(coreScheme)
)

func init() {
	types := []runtime.Object{&corev1.Namespace{}, &corev1.NamespaceList{}}
	coreScheme.AddKnownTypes(corev1.SchemeGroupVersion, types...)
	// There is one version, which is its own internal form.
	internal := corev1.SchemeGroupVersion
	internal.Version = runtime.APIVersionInternal
	coreScheme.AddKnownTypes(internal, types...)
	metav1.AddToGroupVersion(coreScheme, corev1.SchemeGroupVersion)
	utilruntime.Must(coreScheme.SetVersionPriority(corev1.SchemeGroupVersion))
}

// installNamespaces serves /api with the namespaces, and makes those that exist from the start.
func installNamespaces(ctx context.Context, server *genericapiserver.GenericAPIServer, etcd genericoptions.EtcdOptions) error {
	etcd.StorageConfig.Codec = coreCodecs.LegacyCodec(corev1.SchemeGroupVersion)
	factory := &genericoptions.SimpleStorageFactory{StorageConfig: etcd.StorageConfig}
	store, err := newNamespaceStore(etcd.CreateRESTOptionsGetter(factory, nil))
	if err != nil {
		return fmt.Errorf("serve namespaces: %w", err)
	}
	info := genericapiserver.NewDefaultAPIGroupInfo(corev1.GroupName, coreScheme, metav1.ParameterCodec, coreCodecs)
	info.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{"namespaces": store}
	if err := server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &info); err != nil {
		return fmt.Errorf("serve namespaces: %w", err)
	}
	for _, name := range []string{metav1.NamespaceDefault, Namespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := store.Create(request.WithNamespace(ctx, metav1.NamespaceNone), ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// namespaceStore is the registry of namespaces.
type namespaceStore struct {
	*registry.Store
}

var _ rest.ShortNamesProvider = namespaceStore{}

// ShortNames are what kubectl understands beside the full name.
func (namespaceStore) ShortNames() []string { return []string{"ns"} }

func newNamespaceStore(options generic.RESTOptionsGetter) (namespaceStore, error) {
	strategy := namespaceStrategy{coreScheme, names.SimpleNameGenerator}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &corev1.Namespace{} },
		NewListFunc:               func() runtime.Object { return &corev1.NamespaceList{} },
		DefaultQualifiedResource:  corev1.Resource("namespaces"),
		SingularQualifiedResource: corev1.Resource("namespace"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		TableConvertor:            namespaceTable{},
	}
	return namespaceStore{store}, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options})
}

// namespaceStrategy is what is particular about namespaces: little.
type namespaceStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (namespaceStrategy) NamespaceScoped() bool                                     { return false }
func (namespaceStrategy) AllowCreateOnUpdate(context.Context) bool                  { return false }
func (namespaceStrategy) AllowUnconditionalUpdate(context.Context) bool             { return true }
func (namespaceStrategy) Canonicalize(runtime.Object)                               {}
func (namespaceStrategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (namespaceStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// PrepareForCreate sets what the server sets: the phase, and the label that selectors know a namespace by.
func (namespaceStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	ns := obj.(*corev1.Namespace)
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	nameLabel(ns)
}

// PrepareForUpdate keeps the status, which nobody may write, and the label.
func (namespaceStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	ns := obj.(*corev1.Namespace)
	ns.Status = old.(*corev1.Namespace).Status
	nameLabel(ns)
}

func nameLabel(ns *corev1.Namespace) {
	if ns.Name == "" {
		return // generated later; without a name yet there is nothing to label
	}
	metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
}

// Validate checks the name and the metadata.
func (namespaceStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	ns := obj.(*corev1.Namespace)
	return validation.ValidateObjectMeta(&ns.ObjectMeta, false, validation.ValidateNamespaceName, field.NewPath("metadata"))
}

// ValidateUpdate checks the metadata against what it was.
func (s namespaceStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	was, ns := old.(*corev1.Namespace), obj.(*corev1.Namespace)
	return append(s.Validate(ctx, obj),
		validation.ValidateObjectMetaUpdate(&ns.ObjectMeta, &was.ObjectMeta, field.NewPath("metadata"))...)
}

// namespaceTable is what kubectl get prints.
type namespaceTable struct{}

// ConvertToTable makes a table of one namespace or a list.
func (namespaceTable) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "name of the namespace"},
		{Name: "Status", Type: "string", Description: "phase of the namespace"},
		{Name: "Age", Type: "date", Description: "when it was created"},
	}}
	row := func(ns *corev1.Namespace) {
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{ns.Name, string(ns.Status.Phase), ns.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z")},
			Object: runtime.RawExtension{Object: ns},
		})
	}
	switch obj := obj.(type) {
	case *corev1.Namespace:
		table.ResourceVersion = obj.ResourceVersion
		row(obj)
	case *corev1.NamespaceList:
		table.ListMeta = obj.ListMeta
		for i := range obj.Items {
			row(&obj.Items[i])
		}
	}
	return table, nil
}
