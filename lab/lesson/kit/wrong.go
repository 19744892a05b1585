package kit

import (
	"embed"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

//go:embed wrong.en.md
var files embed.FS

// wrongs is the prose of the wrong states that tracks have in common.
var wrongs = func() *lesson.Prose {
	p, err := lesson.ReadProse(files, "wrong")
	if err != nil {
		panic(err) // the file is part of the program
	}
	return p
}()

// Wrong is a diagnosis whose prose is common to the tracks.
func Wrong(id string, seen func(lesson.Evidence) bool) lesson.Diagnosis {
	return lesson.Diagnosis{ID: id, Seen: seen, Prose: wrongs}
}

// between says at which steps a track takes a state to be wrong: from one on, until another, where they are named.
func between(from, until string, d lesson.Diagnosis) lesson.Diagnosis {
	d.From, d.Until = from, until
	return d
}

// Lost are the states in which what a track works on is no longer there, or is another. No lesson but one of deletion wants them.
func Lost() []lesson.Diagnosis {
	return []lesson.Diagnosis{
		Wrong("crd-gone", func(e lesson.Evidence) bool { return e.Before.CRD != nil && e.After.CRD == nil }),
		Wrong("crd-terminating", func(e lesson.Evidence) bool { return e.After.CRD != nil && e.After.CRD.Terminating }),
		Wrong("crd-anew", func(e lesson.Evidence) bool {
			return e.Before.CRD != nil && e.After.CRD != nil && e.Before.CRD.UID != e.After.CRD.UID
		}),
		Wrong("namespace-gone", func(e lesson.Evidence) bool {
			return e.Find(func(x evidence.Exchange) bool {
				return x.Method == http.MethodDelete && !x.Refused() && !x.DryRun() && x.To("/api/v1/namespaces/"+e.Namespace)
			}) != nil
		}),
		Wrong("elsewhere", func(e lesson.Evidence) bool { return len(e.Elsewhere()) > 0 }),
		Wrong("objects-gone", func(e lesson.Evidence) bool { return len(e.Gone()) > 0 }),
		Wrong("managers-gone", func(e lesson.Evidence) bool { return len(e.Unmanaged()) > 0 }),
	}
}

// Astray are requests by hand that missed what they were meant for; the last one counts.
func Astray() []lesson.Diagnosis {
	return []lesson.Diagnosis{
		Wrong("one-storage", refusedChange(func(field string) bool { return field == "spec.versions" })),
		Wrong("still-recorded", refusedChange(func(field string) bool { return strings.HasPrefix(field, "status.storedVersions[") })),
		Wrong("no-webhook", refusedChange(func(field string) bool { return strings.HasPrefix(field, "spec.conversion.") })),
		Wrong("text-alone", refusedChange(func(field string) bool { return strings.HasSuffix(field, "].deprecationWarning") })),
		Wrong("test-failed", func(e lesson.Evidence) bool {
			x := e.LastChangeByHand()
			return x != nil && x.ContentType == evidence.JSONPatch && x.Status == http.StatusUnprocessableEntity && len(x.Causes) == 0 &&
				x.To(evidence.DefinitionPath(e.Resource))
		}),
		Wrong("wrong-namespace", func(e lesson.Evidence) bool {
			x := e.LastByHand()
			return x != nil && RequestNamespace(e, *x) != "" && RequestNamespace(e, *x) != e.Namespace
		}),
		Wrong("no-such-object", noSuchObject),
	}
}

// refusedChange recognises that the last change of the CRD by hand was refused, and because of which field.
func refusedChange(because func(field string) bool) func(lesson.Evidence) bool {
	return func(e lesson.Evidence) bool {
		x := e.LastChangeByHand()
		return x != nil && x.Refused() && ChangesCRD(e, *x) &&
			slices.ContainsFunc(x.Causes, func(c evidence.Cause) bool { return because(c.Field) })
	}
}

// RequestNamespace is the namespace in which an exchange asked for objects of the track's kind; empty where it did not.
func RequestNamespace(e lesson.Evidence, x evidence.Exchange) string {
	path, _, _ := strings.Cut(x.Path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/") // apis GROUP VERSION namespaces NAMESPACE PLURAL [NAME]
	if len(parts) < 6 || parts[1] != e.Resource.Group || parts[3] != "namespaces" || parts[5] != e.Resource.Plural {
		return ""
	}
	return parts[4]
}

// noSuchObject recognises that the last request by hand named an object that never was, at a version that is served.
func noSuchObject(e lesson.Evidence) bool {
	x := e.LastByHand()
	if x == nil || x.Status != http.StatusNotFound || e.After.CRD == nil {
		return false
	}
	path, _, _ := strings.Cut(x.Path, "?")
	for _, v := range e.After.CRD.Versions {
		name, under := strings.CutPrefix(path, ObjectPath(e, v.Name, ""))
		if under && v.Served && name != "" && e.After.Object(name) == nil && !slices.Contains(e.Named, name) {
			return e.Find(func(y evidence.Exchange) bool { // one that was deleted was there
				return !y.Refused() && (y.To(path) || strings.Contains(y.Body, `"`+name+`"`))
			}) == nil
		}
	}
	return false
}

// ── what is wrong with the versions, in a track that goes from one to another ──

// Order is in which order a track goes from one version to another: the ids of its steps.
type Order struct {
	Old, New                              string // the versions
	Add, Switch                           string // the steps at which the new version is added, and becomes the storage version
	StopServing, Relabel, Trim, Remove    string // the steps that do so with the old version
	Added, Rewritten, Trimmed, Relabelled string // the first steps after the new one is added, all is rewritten, trimmed, relabelled
}

// Wrong are the states of the versions that are wrong at some of the steps.
func (o Order) Wrong() []lesson.Diagnosis {
	at := func(e lesson.Evidence) string { return e.Resource.Group + "/" + o.Old }
	unserved := func(version string) func(lesson.Evidence) bool {
		return func(e lesson.Evidence) bool { v := e.After.Version(version); return v != nil && !v.Served }
	}
	return []lesson.Diagnosis{
		Wrong("stray-version", func(e lesson.Evidence) bool {
			return e.After.CRD != nil && slices.ContainsFunc(e.After.CRD.Versions, func(v evidence.Version) bool { return v.Name != o.Old && v.Name != o.New })
		}),
		Wrong("removed-early", func(e lesson.Evidence) bool {
			return e.After.CRD != nil && e.After.Version(o.Old) == nil && e.StoredAt(o.Old) > 0
		}),
		between("", o.Remove, Wrong("removed", func(e lesson.Evidence) bool {
			return e.Before.CRD != nil && e.After.CRD != nil && e.After.Version(o.Old) == nil
		})),
		between(o.Added, "", Wrong("new-gone", func(e lesson.Evidence) bool { return e.After.CRD != nil && e.After.Version(o.New) == nil })),
		between(o.Add, "", Wrong("new-unserved", unserved(o.New))),
		between("", o.StopServing, Wrong("old-unserved", unserved(o.Old))),
		between(o.Add, o.Switch, Wrong("switched-early", func(e lesson.Evidence) bool { return e.After.StorageVersion() == o.New })),
		between(o.Add, o.Switch, Wrong("recorded-early", func(e lesson.Evidence) bool { return e.After.Lists(o.New) })), // and set back
		between(o.Switch, "", Wrong("switched-back", func(e lesson.Evidence) bool {
			return e.After.StorageVersion() == o.Old && e.After.Lists(o.New)
		})),
		between(o.Add, "", Wrong("record-unknown", func(e lesson.Evidence) bool {
			return slices.ContainsFunc(e.After.StoredVersions(), func(v string) bool { return e.After.Version(v) == nil })
		})),
		between(o.Add, "", Wrong("record-lacks-storage", func(e lesson.Evidence) bool {
			return e.After.CRD != nil && !e.After.Lists(e.After.StorageVersion())
		})),
		between("", o.Trim, Wrong("trimmed-early", func(e lesson.Evidence) bool { // what a migration's controller trims is no mistake
			return e.Before.Lists(o.Old) && e.After.CRD != nil && !e.After.Lists(o.Old) && !e.Migrated()
		})),
		between(o.Rewritten, "", Wrong("stored-again", func(e lesson.Evidence) bool { return e.StoredAt(o.Old) > 0 })),
		between(o.Trimmed, "", Wrong("recorded-again", func(e lesson.Evidence) bool { return e.After.Lists(o.Old) })),
		between("", o.Relabel, Wrong("relabelled-early", func(e lesson.Evidence) bool {
			return len(ManagersAt(e.Before, at(e))) > 0 && len(ManagersAt(e.After, at(e))) == 0
		})),
		between(o.Relabelled, "", Wrong("named-again", func(e lesson.Evidence) bool { return len(ManagersAt(e.After, at(e))) > 0 })),
	}
}

// OtherStrategy recognises that objects are converted otherwise than before the step.
func OtherStrategy() lesson.Diagnosis {
	return Wrong("other-strategy", func(e lesson.Evidence) bool {
		return e.Before.CRD != nil && e.After.CRD != nil && e.Before.CRD.Strategy != e.After.CRD.Strategy
	})
}

// ── what is wrong with a step that has to show something ──

// NotComplete recognises that the verdict is another than complete.
func NotComplete() lesson.Diagnosis {
	return Wrong("not-complete", func(e lesson.Evidence) bool { return e.Verdict != nil && e.Verdict.Verdict != verdict.Complete })
}

// DoneBefore recognises that a step's change was there before the step began, so that it cannot show what it does.
func DoneBefore(change func(*evidence.Observation) bool) lesson.Diagnosis {
	return Wrong("done-before", func(e lesson.Evidence) bool { return change(e.Before) && !e.Migrated() })
}

// More recognises that there are more objects than before the step.
func More() lesson.Diagnosis {
	return Wrong("more", func(e lesson.Evidence) bool { return e.Total() > e.Before.Stored.Total })
}

// Misnamed recognises that there are enough objects, and not those of which the lesson speaks.
func Misnamed(names ...string) lesson.Diagnosis {
	return Wrong("misnamed", func(e lesson.Evidence) bool {
		return e.Total() >= e.Widgets && slices.ContainsFunc(names, func(name string) bool { return e.After.Object(name) == nil })
	})
}

// MadeAnew recognises that somebody has deleted objects and made them anew, at a step that compares them with what they were.
func MadeAnew() lesson.Diagnosis {
	return Wrong("made-anew", func(e lesson.Evidence) bool { return len(e.Anew()) > 0 })
}

// NewManagers recognises that managedFields name managers that they did not name before the step.
func NewManagers() lesson.Diagnosis {
	return Wrong("new-managers", func(e lesson.Evidence) bool { return len(e.NewManagers()) > 0 })
}

// Written recognises that somebody has written objects of before, at a step that shows that nobody has to.
func Written() lesson.Diagnosis {
	return Wrong("written", func(e lesson.Evidence) bool { return len(e.Written()) > 0 })
}
