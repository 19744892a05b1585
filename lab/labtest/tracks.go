package labtest

import (
	"slices"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps"
)

// NotOnEmbedded are the tracks that the embedded server cannot carry, and why.
var NotOnEmbedded = map[string]string{
	"pitfalls/svm-record": "the embedded server has no controllers, so it does not offer StorageVersionMigration",
}

// fewWidgets are enough for a test of a track of many; an observation holds all of them whole.
const fewWidgets = 40

// OnEmbedded are the tracks that the embedded server can carry, with fewer objects where a track is of many.
func OnEmbedded() []*lesson.Track {
	tracks := slices.DeleteFunc(steps.Tracks(), func(t *lesson.Track) bool { return NotOnEmbedded[t.ID] != "" })
	for _, t := range tracks {
		t.Widgets = min(t.Widgets, fewWidgets)
	}
	return tracks
}
