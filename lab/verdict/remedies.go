package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
		panic(err) // strings, numbers, booleans and maps of them can always be marshalled
	}
	return fmt.Sprintf("kubectl patch %s --type=json -p '%s'", what, patch)
}

// asFor points to the finding whose remedy helps here as well.
func asFor(id string) string { return "as for " + id }

// switchStorage makes the target the storage version.
func (l *look) switchStorage() string {
	if slices.Contains(l.drop, l.target) {
		return "add a version that stays to spec.versions, and make it the storage version"
	}
	return patchCommand("crd "+l.crd.Name, slices.Concat(l.set(l.storage, "storage", false), l.set(l.target, "storage", true))...)
}

// set changes a field of an entry of spec.versions, if the entry still stands where it stood.
func (l *look) set(name, field string, value bool) []operation {
	i := slices.IndexFunc(l.crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	at := fmt.Sprintf("/spec/versions/%d/", i)
	return []operation{{"test", at + "name", name}, {"replace", at + field, value}}
}

// serve begins or stops to serve versions.
func (l *look) serve(served bool, names ...string) string {
	var ops []operation
	for _, name := range names {
		ops = append(ops, l.set(name, "served", served)...)
	}
	return patchCommand("crd "+l.crd.Name, ops...)
}

// addAgain gives versions back that were removed too early. Nobody is served at them; their schema lets everything pass,
// because what it was is not known any more.
func (l *look) addAgain(names []string) string {
	var ops []operation
	for _, name := range names {
		ops = append(ops, operation{"add", "/spec/versions/-", map[string]any{
			"name": name, "served": false, "storage": false,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}})
	}
	return "# add " + list(names) + " again, not served, so that everything can be read; then look again: what is next is to rewrite\n" +
		patchCommand("crd "+l.crd.Name, ops...)
}

// rewriteAll writes every object again at the storage version.
func (l *look) rewriteAll() string {
	if l.storage != l.target || slices.Contains(l.drop, l.storage) {
		return "switch the storage version first: until then, every write is stored at " + l.storage
	}
	return fmt.Sprintf("kubectl get %s%s -o yaml | kubectl patch -f - --type=merge -p '{}'", l.named(l.storage), l.everywhere())
}

// lookInEtcd is for those who can reach an etcd that cannot be reached from here. The first field of a stored value is its
// apiVersion.
func (l *look) lookInEtcd() string {
	rewrite := "# " + l.rewriteAll() + "\n"
	if command := l.rewriteAll(); IsCommand(command) {
		rewrite = "# write every object again, or let a StorageVersionMigration do it\n" + command + "\n"
	}
	return "# where etcd can be reached, give crdlab check --etcd-endpoints; or look at the bytes yourself\n" + rewrite +
		"# then count the stored versions, where etcdctl reaches etcd (add its --endpoints, --cacert, --cert and --key)\n" +
		fmt.Sprintf(`etcdctl get --prefix /registry/%s/%s/ --print-value-only | grep -o '^{"apiVersion":"[^"]*"' | sort | uniq -c`, l.resource.Group, l.resource.Plural)
}

// trim takes the versions to be dropped out of the record, if the spec has not been changed meanwhile.
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

// relabelAll relabels the entries of every object that name a version to be dropped. At the storage version, relabelling
// an object that is not stored there would make the patcher the owner of every new default.
func (l *look) relabelAll() string {
	switch {
	case len(l.lost()) > 0:
		return asFor(StoredObjects)
	case l.storage != l.target || slices.Contains(l.drop, l.storage):
		return "switch the storage version first: until then, every write makes entries at " + l.storage
	case l.storedAtDropped() > 0:
		return "rewrite the stored objects first, then relabel"
	}
	var old strings.Builder
	for _, v := range l.drop {
		fmt.Fprintf(&old, ` "%s/%s"`, l.resource.Group, v)
	}
	object, read, where := "{{.metadata.name}}", "name", ""
	if l.namespaced() {
		object, read, where = "{{.metadata.namespace}} "+object, "namespace name", ` -n "$namespace"`
	}
	// One line an object: what it is called, and the patch of its own entries.
	template := `{{range .items}}` + object + ` [{{$c := ""}}{{range $i, $m := .metadata.managedFields}}{{if eq $m.apiVersion` + old.String() + `}}` +
		`{{$c}}{"op":"test","path":"/metadata/managedFields/{{$i}}/apiVersion","value":"{{$m.apiVersion}}"}` +
		`,{"op":"replace","path":"/metadata/managedFields/{{$i}}/apiVersion","value":"` + l.resource.Group + "/" + l.storage + `"}{{$c = ","}}` +
		`{{end}}{{end}}]{{"\n"}}{{end}}`
	what := l.named(l.storage)
	return fmt.Sprintf(`kubectl get %s%s --show-managed-fields -o go-template='%s' | while read -r %s patch; do `+
		`[ "$patch" = "[]" ] || kubectl patch %s "$name"%s --type=json -p "$patch"; done`, what, l.everywhere(), template, read, what, where)
}

// fixReading says what brings reading back.
func (l *look) fixReading() string {
	if len(l.lost()) > 0 {
		return asFor(StoredObjects)
	}
	if c := l.crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		return "fix the conversion webhook"
	}
	return "kubectl describe crd " + l.crd.Name
}

// named is how kubectl names the resource at a version, whatever else has its plural.
func (l *look) named(version string) string {
	return strings.Join([]string{l.resource.Plural, version, l.resource.Group}, ".")
}

func (l *look) namespaced() bool { return l.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

func (l *look) everywhere() string {
	if l.namespaced() {
		return " --all-namespaces"
	}
	return ""
}
