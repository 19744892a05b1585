// Package steps is the list of what is taught.
package steps

import (
	"fmt"
	"strings"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/migrate"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
	"github.com/crdlab/crdlab/lab/steps/webhook"
)

// Tracks returns all tracks, in the order in which they are offered.
func Tracks() []*lesson.Track {
	return append([]*lesson.Track{migrate.Track(), webhook.Track()}, pitfalls.Tracks()...)
}

// Find returns a track by its id; the error names those that there are.
func Find(id string) (*lesson.Track, error) {
	var ids []string
	for _, t := range Tracks() {
		if t.ID == id {
			return t, nil
		}
		ids = append(ids, t.ID)
	}
	return nil, fmt.Errorf("there is no track %q; the tracks are: %s", id, strings.Join(ids, ", "))
}
