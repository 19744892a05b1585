package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestLossyRoundTrip(t *testing.T) {
	warned := labtest.Exchanges("/widgets/alpha", func(x *evidence.Exchange) { x.Warnings = []string{"a field is lost"} })
	labelled := func(team string) labtest.Alteration {
		return labtest.ViewOf("alpha", "v1beta1", "metadata", "labels", map[string]any{"team": team})
	}
	tier := func(widget, tier string) labtest.Alteration {
		return labtest.ViewOf(widget, "v1beta1", "spec", "tier", tier)
	}
	holds(t, pitfalls.LossyRoundTrip, map[string]labtest.Alteration{
		"drop/switched":         labtest.Version("v1beta1", func(v *evidence.Version) { v.Storage = false }),
		"drop/switched by None": labtest.Strategy("None"),
		"drop/dropped":          labtest.NoConversions,
		"drop/dropped not":      labtest.Conversions("v1alpha1", func(c *evidence.Conversion) { c.Request = "{}" }),
		"drop/accepted":         warned,
		"drop/label":            labelled("green"),
		"drop/erased":           tier("alpha", "gold"),
		"drop/bravo":            tier("bravo", "standard"),

		"stash/accepted":       warned,
		"stash/label":          labelled("blue"),
		"stash/kept":           tier("alpha", "standard"),
		"stash/stashed":        labtest.ViewOf("alpha", "v1alpha1", "metadata", "annotations", nil),
		"stash/bytes":          labtest.BytesOf("alpha", "spec", "tier", nil),
		"stash/bytes and note": labtest.BytesOf("alpha", "metadata", "annotations", map[string]any{"conversion.crdlab.dev/v1beta1": "{}"}),

		"limit/accepted": labtest.Answered("PUT", "/widgets/alpha", 409),
		"limit/label":    labelled("green"),
		"limit/erased":   tier("alpha", "gold"),

		"way-back/kept":       tier("bravo", "standard"),
		"way-back/strategy":   labtest.Strategy("Webhook"),
		"way-back/old-client": labtest.Answered("GET", "/widgets/alpha", 200),
	}, map[string]labtest.Question{
		"drop":     {Alter: tier("alpha", "gold"), Right: "kept"},
		"stash":    {Alter: tier("alpha", "standard"), Right: "default"},
		"limit":    {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "tier", nil), Right: "nothing"},
		"way-back": {Alter: labtest.Answered("GET", "/widgets/alpha", 200), Right: "read"},
	}, "stash") // the webhook is the lab's own
}

// TestAResetBringsTheFirstReleaseBack: whoever begins again meets the webhook that drops.
func TestAResetBringsTheFirstReleaseBack(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, pitfalls.LossyRoundTrip())
	for _, until := range []string{"stash", "drop"} {
		if err := lab.Run(t.Context(), s, until, func(step *lab.Step) {
			if step.Result != lesson.Passed {
				t.Errorf("until %s, %s %s: %v", until, step.ID, step.Result, step.Err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
