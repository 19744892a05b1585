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

// order is in which the versions change.
var order = kit.Order{
	Old: oldVersion, New: newVersion,
	Add: "add-v1beta1", Switch: "switch-storage",
	StopServing: "stop-serving", Relabel: "relabel-managed-fields", Trim: "trim-stored-versions", Remove: "remove-v1alpha1",
	Added: "deprecate-v1alpha1", Rewritten: "attempt-removal", Trimmed: "stop-serving", Relabelled: "remove-v1alpha1",
}

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
		Wrong: slices.Concat(kit.Lost(), order.Wrong(), []lesson.Diagnosis{
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
