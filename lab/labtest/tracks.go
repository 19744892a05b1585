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

// OnEmbedded are the tracks that the embedded server can carry.
func OnEmbedded() []*lesson.Track {
	return slices.DeleteFunc(steps.Tracks(), func(t *lesson.Track) bool { return NotOnEmbedded[t.ID] != "" })
}
