package embedded

import (
	corev1 "k8s.io/api/core/v1"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions are the schemas of what is served beside custom resources. Those of the core group are generated in a
// module that cannot be imported, so the one kind of it that is served here is described by hand.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := generatedopenapi.GetOpenAPIDefinitions(ref)
	to := func(model string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(model), Default: map[string]any{}}}
	}
	objectMeta, listMeta := metav1.ObjectMeta{}.OpenAPIModelName(), metav1.ListMeta{}.OpenAPIModelName()
	namespace, namespaces := corev1.Namespace{}.OpenAPIModelName(), corev1.NamespaceList{}.OpenAPIModelName()
	specModel, status := corev1.NamespaceSpec{}.OpenAPIModelName(), corev1.NamespaceStatus{}.OpenAPIModelName()
	condition, moment := corev1.NamespaceCondition{}.OpenAPIModelName(), metav1.Time{}.OpenAPIModelName()

	all[namespace] = object("A name that separates objects.", map[string]spec.Schema{
		"kind": *spec.StringProperty(), "apiVersion": *spec.StringProperty(),
		"metadata": to(objectMeta), "spec": to(specModel), "status": to(status),
	}, objectMeta, specModel, status)
	all[namespaces] = object("A list of namespaces.", map[string]spec.Schema{
		"kind": *spec.StringProperty(), "apiVersion": *spec.StringProperty(),
		"metadata": to(listMeta), "items": list(to(namespace)),
	}, listMeta, namespace)
	all[specModel] = object("What is asked of a namespace.", map[string]spec.Schema{
		"finalizers": list(*spec.StringProperty()),
	})
	all[status] = object("What a namespace is like.", map[string]spec.Schema{
		"phase": *spec.StringProperty(), "conditions": list(to(condition)),
	}, condition)
	all[condition] = object("One condition of a namespace.", map[string]spec.Schema{
		"type": *spec.StringProperty(), "status": *spec.StringProperty(), "reason": *spec.StringProperty(),
		"message":            *spec.StringProperty(),
		"lastTransitionTime": {SchemaProps: spec.SchemaProps{Ref: ref(moment)}},
	}, moment)
	return all
}

func object(description string, properties map[string]spec.Schema, dependencies ...string) common.OpenAPIDefinition {
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: description, Type: []string{"object"}, Properties: properties,
		}},
		Dependencies: dependencies,
	}
}

func list(of spec.Schema) spec.Schema {
	return spec.Schema{
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-list-type": "atomic"}},
		SchemaProps:      spec.SchemaProps{Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &of}},
	}
}
