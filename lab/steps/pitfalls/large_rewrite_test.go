package pitfalls_test

import (
	"slices"
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestLargeRewrite(t *testing.T) {
	holds(t, notSoLarge, map[string]labtest.Alteration{
		"many/stored": labtest.Count("v1alpha1", -1),
		"many/record": labtest.Record("v1alpha1"),

		"rewrite/killed":     loads(func(full, _ *rewrite.Load) { full.Interrupted = false }),
		"rewrite/killed all": loads(func(full, _ *rewrite.Load) { full.Written = 40 }),
		"rewrite/resumed":    loads(func(_, polite *rewrite.Load) { polite.Written-- }),
		"rewrite/once": func(e *lesson.Evidence) {
			r := *e.Rewrite
			all := *r.Loaded
			all.Events++
			r.Loaded, e.Rewrite = &all, &r
		},
		"rewrite/stored": labtest.Count("v1alpha1", 1),
	}, map[string]labtest.Question{
		"many":    {Alter: labtest.Count("v1beta1", 1), Right: "some"},
		"rewrite": {Alter: loads(func(full, polite *rewrite.Load) { full.P99MS = polite.P99MS }), Right: "same"},
		"finish": {Alter: func(e *lesson.Evidence) {
			e.After.Object("alpha").ResourceVersion = e.Before.Object("alpha").ResourceVersion
		}, Right: "no"},
	}, "rewrite")
}

// notSoLarge is the track with fewer objects.
func notSoLarge() *lesson.Track {
	track := pitfalls.LargeRewrite()
	track.Widgets = 40
	return track
}

// loads alters what the two parts of the rewrite were for others.
func loads(change func(full, polite *rewrite.Load)) labtest.Alteration {
	return func(e *lesson.Evidence) {
		r := *e.Rewrite
		r.Loads = slices.Clone(r.Loads)
		change(&r.Loads[0], &r.Loads[1])
		e.Rewrite = &r
	}
}
