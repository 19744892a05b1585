// Package webhook is the track of a migration that a conversion webhook carries: a field has another name in the new
// version. The webhook is the lab's own, and is broken on purpose on the way. One file a step, its prose beside it.
package webhook

import (
	"embed"
	"net/http"
	"slices"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// The versions of the CRD, and what each calls the one field whose name changes. What the run says of them is read from the
// server; these are the names that the steps ask for.
const (
	oldVersion = "v1alpha1"
	newVersion = "v1beta1"
	oldField   = "label"
	newField   = "displayName"
)

// The objects that the lesson speaks of.
const (
	alpha   = "alpha"   // the one that is watched, and is written first
	bravo   = "bravo"   // nothing special
	charlie = "charlie" // made by server-side apply of the team
	delta   = "delta"   // stays at the old version until the rewrite
	echo    = "echo"    // is written while the webhook adds a field
	foxtrot = "foxtrot" // made after the storage switch
	golf    = "golf"    // made and deleted, to count conversions; through the storage version
	hotel   = "hotel"   // the same, through the other version
	india   = "india"   // made while the webhook is down
)

var named = []string{alpha, bravo, charlie, delta, echo, foxtrot}

const team = "team"

// mappings are how the webhook converts: both ways, nothing is lost.
var mappings = conversion.Renames(oldVersion, newVersion, "spec."+oldField, newField)

//go:embed *.md
var prose embed.FS

// fault recognises what somebody meets because of a fault of the webhook that is still switched on; from a step on, and until
// another.
func fault(from, until string, met func(lesson.Evidence) bool) lesson.Diagnosis {
	return lesson.Diagnosis{ID: "fault", From: from, Until: until, Seen: func(e lesson.Evidence) bool { return e.Fault.ID != "" && met(e) }}
}

func failed(e lesson.Evidence) bool { return e.Failure != nil }

func refused(e lesson.Evidence) bool {
	x := e.Refusal()
	return x != nil && x.Status >= http.StatusInternalServerError
}

// order is in which the versions change.
var order = kit.Order{
	Old: oldVersion, New: newVersion,
	Add: "serve-both", Switch: "switch-storage",
	StopServing: "stop-serving", Relabel: "rewrite", Trim: "clean-up", Remove: "clean-up",
	Added: "one-object-two-views", Rewritten: "attempt-removal", Trimmed: "verify", Relabelled: "attempt-removal",
}

// Track is the lesson.
func Track() *lesson.Track {
	return &lesson.Track{
		ID:       "webhook",
		Group:    lesson.Webhook,
		Strategy: "Webhook",
		Versions: []string{oldVersion, newVersion},
		Plural:   "widgets",
		Minutes:  30,
		Needs:    []lesson.Needs{lesson.NeedsWebhook},
		Subject:  alpha,
		Named:    named,
		Mappings: mappings,
		Wrong: slices.Concat([]lesson.Diagnosis{
			fault("", "", failed),
			fault("", "outage", refused), fault("rewrite", "verify", refused), // at the outage by hand, refusals are what is shown
		}, kit.Lost(), order.Wrong(), []lesson.Diagnosis{
			{ID: "none-early", Seen: func(e lesson.Evidence) bool {
				return e.Before.CRD != nil && e.Before.CRD.Strategy == "Webhook" && e.After.CRD != nil && e.After.CRD.Strategy == "None" &&
					e.After.Version(oldVersion) != nil
			}},
		}, kit.Astray()),
		Prose: prose,
		Steps: []lesson.Step{
			create(),
			serveBoth(),
			oneObjectTwoViews(),
			pruneAfterConvert(),
			switchStorage(),
			updateOne(),
			stopServing(),
			outage(),
			rewriteObjects(),
			attemptRemoval(),
			cleanUp(),
			verify(),
		},
	}
}
