package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// aim decides where the migration leads, and what is to be dropped.
//
// Where nobody says what is to be dropped, a migration leads to the newest version, as Kubernetes orders them: a storage
// version that is older says that it has not begun, and not that the newer one is to be dropped. A newer version that is
// neither served nor stored at, and was not before, is only being prepared.
func (l *look) aim(drop []string) {
	if l.asked = len(drop) > 0; l.asked {
		l.drop = unique(drop)
		l.target = l.storage
		if slices.Contains(l.drop, l.storage) {
			stays := func(v string) bool { return !slices.Contains(l.drop, v) }
			l.target = cmp.Or(l.newest(func(v string) bool { return stays(v) && l.serves(v) }), l.newest(stays), l.storage)
		}
		return
	}
	l.target = l.newest(func(v string) bool { return v == l.storage || l.serves(v) })
	l.drop = slices.DeleteFunc(l.survey.versions(l.crd), func(v string) bool {
		return v == l.target || newer(v, l.target) && l.version(v) != nil && !l.wasStored(v)
	})
}

// newest is the newest entry of spec.versions that is fit; empty where none is.
func (l *look) newest(fit func(string) bool) string {
	out := ""
	for _, v := range l.crd.Spec.Versions {
		if fit(v.Name) && (out == "" || newer(v.Name, out)) {
			out = v.Name
		}
	}
	return out
}

func newer(a, b string) bool { return version.CompareKubeAwareVersionStrings(a, b) > 0 }

// wasStored says that objects were stored at a version, by the bytes or by the record.
func (l *look) wasStored(v string) bool {
	return l.survey.stored[v] != nil || slices.Contains(l.crd.Status.StoredVersions, v)
}

// unnamed are the versions to be dropped that nothing names: they are gone, or never were.
func (l *look) unnamed() (out []string) {
	named := l.survey.versions(l.crd)
	for _, v := range l.drop {
		if !slices.Contains(named, v) {
			out = append(out, v)
		}
	}
	return out
}

// nothingNames says of versions to be dropped that nothing names them, as far as was looked.
func (l *look) nothingNames(versions []string) string {
	where := []string{"spec.versions", "storedVersions"}
	if l.survey.access {
		where = append(where, "bytes")
	}
	if l.survey.made {
		where = append(where, "managedFields")
	}
	last := len(where) - 1
	return fmt.Sprintf("%s is named nowhere: not in %s or %s", list(versions), strings.Join(where[:last], ", "), where[last])
}

// summary is the answer in one sentence.
func (l *look) summary(a Answer) string {
	what := "the migration"
	if len(l.drop) > 0 {
		what += " away from " + list(l.drop)
	}
	var out string
	switch {
	case a == Unknown:
		out = "cannot tell whether " + what + " is complete"
	case a == Incomplete && l.storage != l.target && !l.asked && !l.wasStored(l.target):
		out = fmt.Sprintf("the migration from %s to %s has not begun", l.storage, l.target)
	case a == Incomplete:
		out = what + " is not complete"
	case len(l.drop) == 0:
		if coming := l.newest(func(v string) bool { return newer(v, l.target) }); coming != "" {
			return fmt.Sprintf("there is nothing to migrate: everything is at %s; %s is newer, and not served yet", l.target, coming)
		}
		return "there is nothing to migrate: no version but " + l.target + " is named anywhere"
	default:
		out = what + " is complete"
	}
	if lost := l.lost(); len(lost) > 0 {
		out += fmt.Sprintf(": objects are stored at %s, which spec.versions lacks, and cannot be read", list(lost))
	}
	if unnamed := l.unnamed(); len(unnamed) > 0 {
		out += fmt.Sprintf("; %s; if it was never a version of this CRD, look at its spelling (what is named: %s)",
			l.nothingNames(unnamed), list(l.survey.versions(l.crd)))
	}
	return out
}

// list names things in a sentence.
func list(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// unique takes out what is said twice.
func unique(words []string) (out []string) {
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
