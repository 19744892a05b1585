package pitfalls_test

import (
	"maps"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// holds proves of a track what every track must hold: each check and each answer changes on altered evidence, no action can be
// left out, each may be done twice, and the commands that are shown do the same as the lab. The checks of a way back that ends
// in place are altered here. Reads are the steps in which there is nothing to be done by hand.
func holds(t *testing.T, track func() *lesson.Track, checks map[string]labtest.Alteration, questions map[string]labtest.Question, reads ...string) {
	t.Parallel()
	t.Run("altered", func(t *testing.T) { t.Parallel(); labtest.Altered(t, track(), withInPlace(track(), checks), questions) })
	t.Run("left out", func(t *testing.T) { t.Parallel(); labtest.EveryActionIsNeeded(t, track) })
	t.Run("twice", func(t *testing.T) { t.Parallel(); labtest.EveryActionMayBeDoneTwice(t, track()) })
	t.Run("by hand", func(t *testing.T) { t.Parallel(); labtest.ByHand(t, track(), reads...) })
}

// withInPlace adds the alterations for the checks of a way back.
func withInPlace(track *lesson.Track, checks map[string]labtest.Alteration) map[string]labtest.Alteration {
	checks = maps.Clone(checks)
	last := track.Steps[len(track.Steps)-1]
	for _, c := range last.Checks {
		if id := last.ID + "/" + c.ID; checks[id] == nil && inPlace[c.ID] != nil {
			checks[id] = inPlace[c.ID]
		}
	}
	return checks
}

// inPlace has for every check of a way back that ends in place an alteration that it must notice.
var inPlace = map[string]labtest.Alteration{
	"stored":   labtest.Count("v1alpha1", 1),
	"record":   labtest.Record("v1alpha1", "v1beta1"),
	"removed":  labtest.Version("v1beta1", func(v *evidence.Version) { v.Name = "v1alpha1" }),
	"readable": labtest.Object("alpha", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 500} }),
	"complete": labtest.Verdicts(incomplete),
}

func incomplete(v *verdict.Verdict) { v.Verdict = verdict.Incomplete }
