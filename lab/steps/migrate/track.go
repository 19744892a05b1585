// Package migrate is the track of a migration with conversion strategy None: one field is added, the storage version is
// switched, every object is rewritten, and the old version is removed. One file a step, its prose beside it.
package migrate

import (
	"embed"
	"slices"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// The versions of the CRD. What the run says of them is read from the server; these are the names that the steps ask
// for.
const (
	oldVersion = "v1alpha1"
	newVersion = "v1beta1"
)

// The objects that the lesson speaks of.
const (
	alpha   = "alpha"   // nothing special: the one that is watched
	bravo   = "bravo"   // came with a field that the schema does not know
	charlie = "charlie" // made by server-side apply of the team
	foxtrot = "foxtrot" // made after the storage switch
)

// named are all of them, and those that only fill the scene.
var named = []string{alpha, bravo, charlie, "delta", "echo", foxtrot}

// Field managers.
const (
	lab  = "crdlab"
	team = "team"
)

//go:embed *.md
var prose embed.FS

// Track is the lesson.
func Track() *lesson.Track {
	return &lesson.Track{
		ID:       "migrate",
		Group:    lesson.Migration,
		Strategy: "None",
		Versions: []string{oldVersion, newVersion},
		Plural:   "widgets",
		Minutes:  25,
		Subject:  alpha,
		Named:    named,
		Wrong: slices.Concat(kit.Lost(), []lesson.Diagnosis{
			kit.StrayVersion(oldVersion, newVersion),
			kit.RemovedEarly(oldVersion),
			kit.Between("", "remove-v1alpha1", kit.Removed(oldVersion)),
			kit.Between("deprecate-v1alpha1", "", kit.NewGone(newVersion)),
			kit.Between("add-v1beta1", "", kit.NewUnserved(newVersion)),
			kit.Between("", "stop-serving", kit.OldUnserved(oldVersion)),
			kit.Between("add-v1beta1", "switch-storage", kit.SwitchedEarly(newVersion)),
			kit.Between("add-v1beta1", "switch-storage", kit.RecordedEarly(newVersion)),
			kit.Between("switch-storage", "", kit.SwitchedBack(oldVersion)),
			kit.Between("add-v1beta1", "", kit.RecordUnknown()),
			kit.Between("add-v1beta1", "", kit.RecordLacksStorage()),
			kit.Between("", "trim-stored-versions", kit.TrimmedEarly(oldVersion)),
			kit.Between("attempt-removal", "", kit.StoredAgain(oldVersion)),
			kit.Between("stop-serving", "", kit.RecordedAgain(oldVersion)),
			kit.Between("", "relabel-managed-fields", kit.RelabelledEarly(oldVersion)),
			kit.Between("remove-v1alpha1", "", kit.NamedAgain(oldVersion)),
			kit.OtherStrategy(),
		}, kit.Astray()),
		Prose: prose,
		Steps: []lesson.Step{
			createOld(),
			addNew(),
			deprecateOld(),
			switchStorage(),
			rewriteObjects(),
			attemptRemoval(),
			trimStoredVersions(),
			stopServing(),
			relabelManagedFields(),
			removeOld(),
			verify(),
		},
	}
}
