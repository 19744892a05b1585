package embedded

import (
	"net/http"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// installGroups serves /apis, in both forms. In a full cluster the aggregator does that; without it kubectl finds no
// resource at all.
func installGroups(api *apiserver.CustomResourceDefinitions) {
	list := groupList{api.Informers.Apiextensions().V1().CustomResourceDefinitions().Lister()}
	server := api.GenericAPIServer
	both := aggregated.WrapAggregatedDiscoveryToHandler(list, server.AggregatedDiscoveryGroupManager, nil)
	server.Handler.GoRestfulContainer.Add(both.GenerateWebService("/apis", metav1.APIGroupList{}))
}

// groupList answers with the API groups in the form that clients read who do not know the aggregated one.
type groupList struct {
	crds listers.CustomResourceDefinitionLister
}

func (l groupList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	crds, err := l.crds.List(labels.Everything())
	if err != nil {
		http.Error(w, "list the CRDs: "+err.Error(), http.StatusInternalServerError)
		return
	}
	groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{
		group(apiextensionsv1.GroupName, []string{apiextensionsv1.SchemeGroupVersion.Version}),
	}}
	served := servedVersions(crds)
	for _, name := range sortedKeys(served) {
		groups.Groups = append(groups.Groups, group(name, served[name]))
	}
	responsewriters.WriteObjectNegotiated(apiserver.Codecs, negotiation.DefaultEndpointRestrictions,
		schema.GroupVersion{Version: "v1"}, w, r, http.StatusOK, groups, false)
}

// servedVersions are the versions that each group serves, the preferred one first.
func servedVersions(crds []*apiextensionsv1.CustomResourceDefinition) map[string][]string {
	served := map[string][]string{}
	for _, crd := range crds {
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Served && !slices.Contains(served[crd.Spec.Group], v.Name) {
				served[crd.Spec.Group] = append(served[crd.Spec.Group], v.Name)
			}
		}
	}
	for _, versions := range served {
		slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	}
	return served
}

func group(name string, versions []string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, v := range versions {
		gv := schema.GroupVersion{Group: name, Version: v}
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
