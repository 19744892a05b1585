package kit

import (
	"strings"

	"github.com/crdlab/crdlab/lab/lesson"
)

// Commands makes the shell commands that do the same as an action.
type Commands = func(*lesson.Env) []string

// Kubectl makes commands that do not depend on the cluster's state. In them CRD stands for the CRD's name, OLD and NEW for
// the resource at the track's oldest and newest version, OLDVERSION and NEWVERSION for these, and GROUP for the API group.
func Kubectl(commands ...string) Commands {
	return func(env *lesson.Env) []string {
		old, latest := env.Oldest(), env.Newest()
		r := env.Resource
		fill := strings.NewReplacer("OLDVERSION", old, "NEWVERSION", latest, "CRD", r.String(),
			"OLD", r.Plural+"."+old+"."+r.Group, "NEW", r.Plural+"."+latest+"."+r.Group, "GROUP", r.Group)
		out := make([]string, len(commands))
		for i, c := range commands {
			out[i] = fill.Replace(c)
		}
		return out
	}
}

// FromManifest is a command that reads an action's manifest from its standard input.
func FromManifest(command, step, action string) Commands {
	return func(env *lesson.Env) []string {
		body, err := Manifest(env, step, action)
		if err != nil {
			return []string{"# " + err.Error()}
		}
		return []string{command + " -f - <<'EOF'\n" + string(body) + "EOF"}
	}
}

// PatchCRD is a JSON patch of the CRD that first makes sure that the first entry of spec.versions is the oldest version.
func PatchCRD(op string) Commands {
	return Kubectl(`kubectl patch crd CRD --type=json -p '[{"op":"test","path":"/spec/versions/0/name","value":"OLDVERSION"},` + op + `]'`)
}

// Then puts commands one after the other.
func Then(parts ...Commands) Commands {
	return func(env *lesson.Env) []string {
		var out []string
		for _, p := range parts {
			out = append(out, p(env)...)
		}
		return out
	}
}

// Lines say what an action changes, for the screen.
func Lines(l ...string) Commands {
	return func(*lesson.Env) []string { return l }
}

// RelabelCommands have the entries of every object name the newest version instead of the oldest: a Go template makes a JSON
// patch of each object's own entries.
var RelabelCommands = relabelAll("NEW", "OLDVERSION", "NEWVERSION")

// RelabelBackCommands do it the other way round.
var RelabelBackCommands = relabelAll("OLD", "NEWVERSION", "OLDVERSION")

// RelabelEntries do it for one object; for the entries of one manager, where it is named.
func RelabelEntries(object, manager string) Commands {
	return Kubectl(relabel("NEW", "OLDVERSION", "NEWVERSION", object, manager))
}

func relabelAll(at, from, to string) Commands {
	return Kubectl("for w in $(kubectl get " + at + " -o jsonpath='{.items[*].metadata.name}'); do\n" + relabel(at, from, to, "$w", "") + "\ndone")
}

func relabel(at, from, to, object, manager string) string {
	which := `eq $m.apiVersion "GROUP/` + from + `"`
	if manager != "" {
		which = `and (` + which + `) (eq $m.manager "` + manager + `")`
	}
	template := `[{{$c := ""}}{{range $i, $m := .metadata.managedFields}}{{if ` + which + `}}{{$c}}` +
		`{"op":"replace","path":"/metadata/managedFields/{{$i}}/apiVersion","value":"GROUP/` + to + `"}{{$c = ","}}{{end}}{{end}}]`
	return `  patch=$(kubectl get ` + at + ` ` + object + ` --show-managed-fields -o go-template='` + template + `')
  kubectl patch ` + at + ` ` + object + ` --type=json -p "$patch"`
}

// TrimCommands declare the newest version as all of storedVersions, unless the CRD has changed meanwhile.
var TrimCommands = TrimTo("NEWVERSION")

// TrimTo does the same with a version, such as OLDVERSION.
func TrimTo(version string) Commands {
	return Kubectl(`rv=$(kubectl get crd CRD -o jsonpath='{.metadata.resourceVersion}')` + "\n" +
		`kubectl patch crd CRD --subresource=status --type=json -p '[{"op":"test","path":"/metadata/resourceVersion","value":"'$rv'"},{"op":"replace","path":"/status/storedVersions","value":["` + version + `"]}]'`)
}

// RewriteCommands write every object, and ask for no change: a merge patch {} through the resource at a version, such as NEW.
func RewriteCommands(at string) Commands {
	return Kubectl(`for w in $(kubectl get ` + at + ` -o jsonpath='{.items[*].metadata.name}'); do kubectl patch ` + at + ` $w --type=merge -p '{}'; done`)
}

// AskRemoval asks by a dry run whether the oldest version may go.
var AskRemoval = Kubectl(`kubectl patch crd CRD --dry-run=server --type=json -p '[{"op":"test","path":"/spec/versions/0/name","value":"OLDVERSION"},` + RemoveOldest + `]'`)

// CollectionURL is where kubectl finds the objects of a version, for requests that it has no command for.
func CollectionURL(version string) string {
	return "/apis/GROUP/" + version + "/namespaces/$(kubectl config view --minify -o jsonpath='{..namespace}')/widgets"
}
