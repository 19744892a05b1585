package verdict

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// storageVersion: what goes must not be what the next write will use.
func (l *look) storageVersion() Finding {
	f := Finding{ID: StorageVersion, Result: Pass, Summary: "every write is stored at " + l.storage}
	if !slices.Contains(l.drop, l.storage) {
		return f
	}
	f.Result, f.Summary = Fail, "every write is stored at "+l.storage+", which is to go"
	f.Remedy = l.switchStorage()
	return f
}

// storedObjects: no object may be stored at a version that goes. Only the bytes tell.
func (l *look) storedObjects() Finding {
	f := Finding{ID: StoredObjects, Result: Pass}
	if !l.survey.access {
		f.Result = Unclear
		f.Summary = "at which version the objects are stored cannot be told: a GET or LIST shows the version that was asked for"
		f.Evidence = []string{l.survey.noAccess}
		f.Remedy = "give access to etcd"
		return f
	}
	f.Summary = fmt.Sprintf("none of %s is stored at a version that goes", count(l.survey.total, "object"))
	for _, v := range slices.Sorted(maps.Keys(l.survey.stored)) {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s stored", v, count(l.survey.stored[v].count, "object")))
	}
	left := 0
	for _, v := range l.drop {
		if n := l.survey.stored[v]; n != nil {
			left += n.count
			f.Evidence = append(f.Evidence, prefixed("stored at "+v+": ", n.lines())...)
		}
	}
	if left > 0 {
		f.Result, f.Summary = Fail, fmt.Sprintf("%d of %s still stored at a version that goes", left, count(l.survey.total, "object"))
		f.Remedy = l.rewriteAll()
	}
	return f
}

// storedVersions: the record must be true, and must not name what goes.
func (l *look) storedVersions() Finding {
	record := l.crd.Status.StoredVersions
	f := Finding{ID: StoredVersions, Result: Pass, Summary: fmt.Sprintf("status.storedVersions is [%s]", strings.Join(record, " "))}
	for _, v := range l.drop {
		if slices.Contains(record, v) {
			f.Evidence = append(f.Evidence, "it lists "+v+", so that the server refuses to remove it")
		}
	}
	if !slices.Contains(record, l.storage) {
		f.Evidence = append(f.Evidence, "it lacks "+l.storage+", at which every write is stored")
	}
	for _, v := range record {
		if l.version(v) == nil {
			f.Evidence = append(f.Evidence, "it lists "+v+", which is not in spec.versions: every change of the spec is refused")
		}
	}
	hidden := false
	for _, v := range slices.Sorted(maps.Keys(l.survey.stored)) {
		if !slices.Contains(record, v) {
			hidden = true
			f.Evidence = append(f.Evidence, fmt.Sprintf("it lacks %s, at which %s stored: nothing keeps the server from removing it", v, count(l.survey.stored[v].count, "object")))
		}
	}
	if len(f.Evidence) == 0 {
		return f
	}
	f.Result = Fail
	switch {
	case l.storedAtDropped() > 0 || hidden:
		f.Remedy = "remove no version; rewrite the stored objects first, then trim"
	case slices.Contains(l.drop, l.storage):
		f.Remedy = "switch the storage version first"
	default:
		f.Remedy = l.trim()
	}
	return f
}

// managedFields: an entry at a version that is gone breaks server-side apply for everybody.
func (l *look) managedFields() Finding {
	f := Finding{ID: ManagedFields, Result: Pass, Summary: "no managedFields entry names a version that goes"}
	if !l.survey.made {
		f.Result, f.Summary = Unclear, "the managedFields could not be read"
		return f
	}
	for _, v := range l.drop {
		n := l.survey.labelled[v]
		if n == nil {
			continue
		}
		if f.Result == Pass {
			f.Result, f.Remedy = Fail, l.relabelFirst(v)
			f.Summary = "managedFields still name a version that goes: once it is gone, every server-side apply on such an object fails"
		}
		for _, m := range slices.Sorted(maps.Keys(l.survey.managers[v])) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: manager %s in %s", v, m, count(l.survey.managers[v][m], "entry")))
		}
		f.Evidence = append(f.Evidence, prefixed("entries at "+v+": ", n.lines())...)
	}
	return f
}

// served: removing a version that is served breaks its clients; removing the last one, everybody.
func (l *look) served() Finding {
	f := Finding{ID: Served, Result: Pass, Summary: "no version that goes is served"}
	var left []string
	for _, v := range l.crd.Spec.Versions {
		switch {
		case !slices.Contains(l.drop, v.Name):
			if v.Served {
				left = append(left, v.Name)
			}
		case v.Served:
			f.Result = Warn
			f.Evidence = append(f.Evidence, v.Name+" is served: its clients get 404 as soon as it is gone")
			f.Remedy = l.stopServing(v.Name)
		default:
			f.Evidence = append(f.Evidence, v.Name+" is in spec.versions and not served")
		}
	}
	if f.Result == Warn {
		f.Summary = "a version that goes is still served: stop serving it first, which can be undone at once"
	}
	if len(left) == 0 {
		f.Result, f.Summary, f.Remedy = Fail, "no version that stays is served: nobody could read or write the objects", "serve a version that stays"
	}
	return f
}

// readable: whatever is stored must be readable at every served version.
func (l *look) readable() Finding {
	f := Finding{ID: Readable, Result: Pass, Summary: "every served version can be listed and read"}
	for _, r := range l.reads {
		if r.list != nil {
			f.Result = Fail
			f.Evidence = append(f.Evidence, fmt.Sprintf("LIST at %s: %v", r.version, r.list))
		} else {
			f.Evidence = append(f.Evidence, fmt.Sprintf("LIST at %s: %s", r.version, count(r.listed, "object")))
		}
		for _, g := range r.gets {
			answer := "read"
			if g.err != nil {
				f.Result, answer = Fail, g.err.Error()
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("GET %s at %s%s: %s", g.object, r.version, g.storedAt(), answer))
		}
	}
	if len(l.reads) == 0 {
		f.Result, f.Evidence = Fail, []string{"no version is served"}
	}
	if f.Result == Fail {
		f.Summary, f.Remedy = "not everything can be read", l.mendReading()
	}
	return f
}

func (g *get) storedAt() string {
	if g.stored == "" {
		return ""
	}
	return " (stored at " + g.stored + ")"
}

// roundTrip: what a rewrite would lose is lost for good.
func (l *look) roundTrip() Finding {
	f := Finding{ID: RoundTrip, Result: Pass, Summary: fmt.Sprintf("a rewrite would lose nothing of %s asked by dry run", count(l.tried, "object"))}
	if l.untried != "" {
		f.Result, f.Summary = Unclear, l.untried
		return f
	}
	for _, loss := range l.losses {
		f.Result = Fail
		object := fullName(loss.Namespace, loss.Name)
		if loss.Refused != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: refused at %s: %s", object, loss.Version, loss.Refused))
			continue
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s would be lost or changed, as read at %s", object, strings.Join(loss.Fields, ", "), loss.Version))
	}
	if f.Result == Fail {
		f.Summary = "a rewrite would lose fields, or be refused"
		f.Remedy = "make the conversion and the schema of " + l.storage + " keep these fields, or mend these objects, before anything is rewritten"
	}
	return f
}

// restorable: a backup of an object must be accepted at the version that stays.
func (l *look) restorable() Finding {
	f := Finding{ID: Restorable, Result: Pass, Summary: fmt.Sprintf("copies of %s would be accepted at %s, asked by dry run", count(l.tried, "object"), l.storage)}
	if l.untried != "" {
		f.Result, f.Summary = Unclear, l.untried
		return f
	}
	for _, u := range l.unfit {
		f.Evidence = append(f.Evidence, u.String())
		if u.status == http.StatusUnprocessableEntity {
			f.Result = Fail
		} else if f.Result == Pass {
			f.Result = Unclear
		}
	}
	switch f.Result {
	case Fail:
		f.Summary = "not every object is valid at " + l.storage + ": restored from a backup, it would be refused"
		f.Remedy = "make these objects valid at " + l.storage + " while another version still accepts them"
	case Unclear:
		f.Summary = "whether copies would be accepted at " + l.storage + " could not be asked"
	}
	return f
}

// ownerReferences: references by version are resolved through discovery, which will not know the version.
func (l *look) ownerReferences() Finding {
	f := Finding{ID: OwnerReferences, Result: Pass, Summary: "no ownerReference in these objects names this kind at a version that goes (those of other kinds were not looked at)"}
	if !l.survey.made {
		f.Result, f.Summary = Unclear, "the ownerReferences could not be read"
		return f
	}
	for _, v := range l.drop {
		if n := l.survey.owned[v]; n != nil {
			f.Result = Warn
			f.Evidence = append(f.Evidence, prefixed("owned at "+v+": ", n.lines())...)
		}
	}
	if f.Result == Warn {
		f.Summary = "ownerReferences name this kind at a version that goes"
		f.Remedy = "let the controller that sets them set them at " + l.storage
	}
	return f
}

// version is the entry of spec.versions; nil where there is none.
func (l *look) version(name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range l.crd.Spec.Versions {
		if l.crd.Spec.Versions[i].Name == name {
			return &l.crd.Spec.Versions[i]
		}
	}
	return nil
}

func (l *look) storedAtDropped() int {
	n := 0
	for _, v := range l.drop {
		if s := l.survey.stored[v]; s != nil {
			n += s.count
		}
	}
	return n
}

func prefixed(prefix string, lines []string) []string {
	for i := range lines {
		lines[i] = prefix + lines[i]
	}
	return lines
}

// count writes a number of things.
func count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(thing, "y"))
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
