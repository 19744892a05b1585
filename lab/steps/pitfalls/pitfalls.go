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
		NoneRename(),
		DefaultDrift(),
		SSAAfterRemoval(),
		StorageSwitchRace(),
		FlipBack(),
		WebhookOutage(),
		PoisonObject(),
		LossyRoundTrip(),
		OldClientWrite(),
		StuckDeletion(),
		Ratcheting(),
		PreserveUnknownFields(),
		RestoredBytes(),
		Downgrade(),
		LargeRewrite(),
		SVMRecord(),
	}
}

//go:embed */*.md
var prose embed.FS
