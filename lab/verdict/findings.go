package verdict

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// storageVersion: what is to be dropped must not be what the next write will use.
func (l *look) storageVersion() Finding {
	f := Finding{ID: StorageVersion, Result: Pass, Summary: "every write is stored at " + l.storage}
	if unnamed := l.unnamed(); len(unnamed) > 0 {
		f.Evidence = []string{l.nothingNames(unnamed)}
	}
	if l.storage == l.target && !slices.Contains(l.drop, l.storage) {
		return f
	}
	f.Result, f.Remedy = Fail, l.switchStorage()
	switch {
	case l.asked:
		f.Summary = "every write is stored at " + l.storage + ", which is to be dropped"
	case l.wasStored(l.target):
		f.Summary = fmt.Sprintf("%s is the storage version again; %s is newer, and was it before: the migration to it was taken back", l.storage, l.target)
	default:
		f.Summary = fmt.Sprintf("%s is still the storage version; %s is newer: the migration to it has not begun", l.storage, l.target)
	}
	if !l.asked {
		f.Evidence = append(f.Evidence, fmt.Sprintf("--drop %s asks whether %s may be dropped instead", l.target, l.target))
	}
	return f
}

// storedObjects: no object may be stored at a version to be dropped. Only the bytes tell.
func (l *look) storedObjects() Finding {
	f := Finding{ID: StoredObjects, Result: Pass}
	if !l.survey.access {
		f.Result = Unclear
		f.Summary = "at which version the objects are stored cannot be told: a GET or LIST shows the version that was asked for"
		f.Evidence = []string{l.survey.noAccess}
		f.Remedy = l.lookInEtcd()
		return f
	}
	f.Summary = fmt.Sprintf("none of %s is stored at a version to be dropped", count(l.survey.total, "object"))
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
		f.Result, f.Remedy = Fail, l.rewriteAll()
		f.Summary = fmt.Sprintf("%s of %s %s still stored at a version to be dropped", number(left), count(l.survey.total, "object"), are(left))
	}
	if lost := l.lost(); len(lost) > 0 {
		f.Result, f.Remedy = Fail, l.addAgain(lost)
		f.Summary = fmt.Sprintf("objects are stored at %s, which spec.versions lacks: removed too early, or restored since", list(lost))
	}
	return f
}

// storedVersions: the record must be true, and must not name what is to be dropped.
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
			f.Evidence = append(f.Evidence, fmt.Sprintf("it lacks %s, at which %s %s stored: nothing keeps the server from removing it", v,
				count(l.survey.stored[v].count, "object"), are(l.survey.stored[v].count)))
		}
	}
	if len(f.Evidence) == 0 {
		return f
	}
	f.Result = Fail
	switch {
	case len(l.lost()) > 0:
		f.Remedy = asFor(StoredObjects)
	case l.storage != l.target || slices.Contains(l.drop, l.storage):
		f.Remedy = "remove no version; switch the storage version first"
	case l.storedAtDropped() > 0 || hidden:
		f.Remedy = "remove no version; rewrite the stored objects first, then trim"
	default:
		f.Remedy = l.trim()
		if !l.survey.access {
			f.Remedy = "# only when it is known that no object is stored at what is taken out, " + asFor(StoredObjects) + "\n" + f.Remedy
		}
	}
	return f
}

// managedFields: an entry at a version that was removed breaks server-side apply for everybody.
func (l *look) managedFields() Finding {
	f := Finding{ID: ManagedFields, Result: Pass, Summary: "no managedFields entry names a version to be dropped"}
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
			if f.Result, f.Remedy = Fail, l.relabelAll(); !l.survey.access && IsCommand(f.Remedy) {
				f.Remedy = "# only when every object was written again, " + asFor(StoredObjects) + "\n" + f.Remedy
			}
			f.Summary = "managedFields still name a version to be dropped: once it is removed, every server-side apply on such an object fails"
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
	f := Finding{ID: Served, Result: Pass, Summary: "no version to be dropped is served"}
	var left, still []string
	for _, v := range l.crd.Spec.Versions {
		switch {
		case !slices.Contains(l.drop, v.Name):
			if v.Served {
				left = append(left, v.Name)
			}
		case v.Served:
			f.Result = Warn
			still = append(still, v.Name)
			f.Evidence = append(f.Evidence, v.Name+" is served: its clients get 404 as soon as it is removed")
		default:
			f.Evidence = append(f.Evidence, v.Name+" is in spec.versions and not served")
		}
	}
	if f.Result == Warn {
		f.Summary = "a version to be dropped is still served: stop serving it first, which can be undone at once"
		f.Remedy = l.serve(false, still...)
		if l.storage != l.target {
			f.Remedy = "switch the storage version first, and stop serving it when its clients are gone"
		}
	}
	if len(left) == 0 {
		f.Result, f.Summary = Fail, "no version that stays is served: nobody could read or write the objects"
		f.Remedy = "serve a version that stays"
		if !slices.Contains(l.drop, l.target) {
			f.Evidence, f.Remedy = append(f.Evidence, l.target+" is not served"), l.serve(true, l.target)
		}
	}
	return f
}

// readable: whatever is stored must be readable at every served version. Where a version was removed too early, why the
// server refuses is known, and said once.
func (l *look) readable() Finding {
	f := Finding{ID: Readable, Result: Pass, Summary: "every served version can be listed and read"}
	lost := l.lost()
	for _, r := range l.reads {
		if r.list != nil {
			f.Result = Fail
			f.Evidence = append(f.Evidence, fmt.Sprintf("LIST at %s: %s", r.version, refused(r.list, len(lost) > 0)))
		} else {
			f.Evidence = append(f.Evidence, fmt.Sprintf("LIST at %s: %s", r.version, count(r.listed, "object")))
		}
		for _, g := range r.gets {
			answer := "read"
			if g.err != nil {
				f.Result, answer = Fail, refused(g.err, slices.Contains(lost, g.stored))
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("GET %s at %s%s: %s", g.object, r.version, g.storedAt(), answer))
		}
	}
	if len(l.reads) == 0 {
		f.Result, f.Evidence = Fail, []string{"no version is served"}
	}
	if f.Result == Fail {
		f.Summary, f.Remedy = "not everything can be read", l.fixReading()
	}
	return f
}

// refused is an error of a read; its status alone where the reason is known.
func refused(err error, known bool) string {
	var status apierrors.APIStatus
	if known && errors.As(err, &status) {
		return strings.TrimSpace(fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason))
	}
	return err.Error()
}

func (g *get) storedAt() string {
	if g.stored == "" {
		return ""
	}
	return " (stored at " + g.stored + ")"
}

// roundTrip: what a rewrite would lose is lost for good.
func (l *look) roundTrip() Finding {
	f := Finding{ID: RoundTrip, Result: Pass, Summary: fmt.Sprintf("a rewrite would lose nothing of %s asked by dry run", l.triedOfAll())}
	if l.untried != "" {
		f.Result, f.Summary = Unclear, l.untried
		return f
	}
	if l.storage != l.target {
		f.Summary += fmt.Sprintf(", at %s; what one at %s would lose can be asked once that is the storage version", l.storage, l.target)
	}
	if l.skipped {
		f.Result, f.Remedy = Unclear, asFor(StoredObjects)
		f.Summary = "what a rewrite would lose cannot be asked of what is stored at " + list(l.lost())
	}
	var found names
	for _, loss := range l.losses {
		f.Result = Fail
		object := fullName(loss.Namespace, loss.Name)
		if loss.Refused != "" {
			found.add(fmt.Sprintf("%s: refused at %s: %s", object, loss.Version, loss.Refused))
			continue
		}
		found.add(fmt.Sprintf("%s: %s would be lost or changed, as read at %s", object, strings.Join(loss.Fields, ", "), loss.Version))
	}
	f.Evidence = found.lines()
	if f.Result == Fail {
		f.Summary = "a rewrite would lose fields, or be refused"
		f.Remedy = "make the conversion and the schema of " + l.storage + " keep these fields, or fix these objects, before anything is rewritten"
	}
	return f
}

// restorable: a backup of an object must be accepted at the version that stays.
func (l *look) restorable() Finding {
	f := Finding{ID: Restorable, Result: Pass, Summary: fmt.Sprintf("copies of %s would be accepted at %s, asked by dry run", l.triedOfAll(), l.target)}
	if l.untried != "" {
		f.Result, f.Summary = Unclear, l.untried
		return f
	}
	if l.skipped {
		f.Result, f.Remedy = Unclear, asFor(StoredObjects)
	}
	var found names
	for _, u := range l.unfit {
		found.add(u.String())
		if u.status == http.StatusUnprocessableEntity {
			f.Result = Fail
		} else if f.Result == Pass {
			f.Result = Unclear
		}
	}
	f.Evidence = found.lines()
	switch f.Result {
	case Fail:
		f.Summary = "not every object is valid at " + l.target + ": restored from a backup, it would be refused"
		f.Remedy = "make these objects valid at " + l.target + " while another version still accepts them"
	case Unclear:
		f.Summary = "whether copies would be accepted at " + l.target + " could not be asked"
		if l.skipped {
			f.Summary += " of what is stored at " + list(l.lost())
		}
	}
	return f
}

// triedOfAll says how many objects were asked about by dry runs, and of how many where that was not all.
func (l *look) triedOfAll() string {
	all := count(l.survey.total, "object")
	if l.tried == l.survey.total {
		return all
	}
	return number(l.tried) + " of " + all
}

// ownerReferences: references by version are resolved through discovery, which will not know the version.
func (l *look) ownerReferences() Finding {
	f := Finding{ID: OwnerReferences, Result: Pass, Summary: "no ownerReference in these objects names this kind at a version to be dropped (those of other kinds were not looked at)"}
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
		f.Summary = "ownerReferences name this kind at a version to be dropped"
		f.Remedy = "let the controller that sets them set them at " + l.target
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
		return number(n) + " " + strings.TrimSuffix(thing, "y") + "ies"
	}
	return number(n) + " " + thing + "s"
}

// number writes a number with its thousands apart.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
