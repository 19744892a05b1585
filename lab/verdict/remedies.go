package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patchCommand is a kubectl command that sends a JSON patch.
func patchCommand(what string, ops ...operation) string {
	patch, err := json.Marshal(ops)
	if err != nil {
		panic(err) // strings, numbers and booleans can always be marshalled
	}
	return fmt.Sprintf("kubectl patch %s --type=json -p '%s'", what, patch)
}

// switchStorage makes the newest version that stays the storage version.
func (l *look) switchStorage() string {
	to := ""
	for _, v := range l.crd.Spec.Versions {
		if !slices.Contains(l.drop, v.Name) && (to == "" || version.CompareKubeAwareVersionStrings(v.Name, to) > 0) {
			to = v.Name
		}
	}
	if to == "" {
		return "add a version that stays to spec.versions, and make it the storage version"
	}
	return patchCommand("crd "+l.crd.Name,
		operation{"replace", l.versionPath(l.storage, "storage"), false},
		operation{"replace", l.versionPath(to, "storage"), true})
}

// rewriteAll writes every object again at the storage version.
func (l *look) rewriteAll() string {
	if slices.Contains(l.drop, l.storage) {
		return "switch the storage version first: until then, every write is stored at " + l.storage
	}
	return fmt.Sprintf("kubectl get %s%s -o yaml | kubectl patch -f - --type=merge -p '{}'", l.named(l.storage), l.everywhere())
}

// trim takes the versions that go out of the record, if the spec has not been changed meanwhile.
func (l *look) trim() string {
	keep := slices.DeleteFunc(slices.Clone(l.crd.Status.StoredVersions), func(v string) bool {
		return slices.Contains(l.drop, v) || l.version(v) == nil
	})
	if !slices.Contains(keep, l.storage) {
		keep = append(keep, l.storage)
	}
	return patchCommand("crd "+l.crd.Name+" --subresource=status",
		operation{"test", "/metadata/generation", l.crd.Generation},
		operation{"replace", "/status/storedVersions", keep})
}

// relabelFirst relabels the entries of the first object at a version; the next look names the next. At the storage
// version, relabelling an object that is not stored there would make the patcher the owner of every new default.
func (l *look) relabelFirst(from string) string {
	switch {
	case from == l.storage:
		return "switch the storage version first: until then, every write makes entries at " + l.storage
	case l.storedAtDropped() > 0:
		return "rewrite the stored objects first, then relabel"
	}
	first := l.survey.entries[from]
	var ops []operation
	for _, i := range first.indexes {
		path := fmt.Sprintf("/metadata/managedFields/%d/apiVersion", i)
		ops = append(ops,
			operation{"test", path, l.resource.Group + "/" + from},
			operation{"replace", path, l.resource.Group + "/" + l.storage})
	}
	what := l.named(l.storage) + " " + first.name
	if first.namespace != "" {
		what += " -n " + first.namespace
	}
	return patchCommand(what, ops...)
}

func (l *look) stopServing(name string) string {
	return patchCommand("crd "+l.crd.Name, operation{"replace", l.versionPath(name, "served"), false})
}

// mendReading says what brings reading back.
func (l *look) mendReading() string {
	if lost := l.unconvertible(); lost != nil {
		return "add the version that objects are stored at to spec.versions again, with served: false"
	}
	if c := l.crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		return "mend the conversion webhook"
	}
	return "kubectl describe crd " + l.crd.Name
}

// named is how kubectl names the resource at a version, whatever else has its plural.
func (l *look) named(version string) string {
	return strings.Join([]string{l.resource.Plural, version, l.resource.Group}, ".")
}

func (l *look) everywhere() string {
	if l.crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return " --all-namespaces"
	}
	return ""
}

func (l *look) versionPath(name, field string) string {
	i := slices.IndexFunc(l.crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	return fmt.Sprintf("/spec/versions/%d/%s", i, field)
}
