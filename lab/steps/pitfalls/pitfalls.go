// Package pitfalls are short tracks, each of one thing that goes wrong: it happens before your eyes, and the last step is the
// way back. One file a track; its prose and its manifests are in folders of its name.
package pitfalls

import (
	"embed"

	"github.com/crdlab/crdlab/lab/lesson"
)

// Tracks are the pitfalls, in the order in which they are offered.
func Tracks() []*lesson.Track {
	return []*lesson.Track{
		EarlyTrim(),
		Ratcheting(),
		PreserveUnknownFields(),
		RestoredBytes(),
		LargeRewrite(),
		SVMRecord(),
	}
}

//go:embed */*.md
var prose embed.FS
