package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestStorageSwitchRace(t *testing.T) {
	stored := func(after string, byVersion map[string]int) labtest.Alteration {
		return during(after, func(o *evidence.Observation) { o.Stored.ByVersion = byVersion })
	}
	notAccepted := labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 })
	late := map[string]int{"v1alpha1": 1, "v1beta1": 11}
	holds(t, pitfalls.StorageSwitchRace, map[string]labtest.Alteration{
		"hasty/answered":  labtest.Answered("PATCH", "/widgets/race-03", 500),
		"hasty/late":      labtest.NoExchanges("PATCH", "/widgets/race"),
		"hasty/record":    labtest.Record("v1alpha1", "v1beta1"),
		"hasty/removable": notAccepted,
		"hasty/tidied":    labtest.Count("v1alpha1", 1),

		"wait/answered":  labtest.NoExchanges("PATCH", "/widgets/race"),
		"wait/none-late": stored("migrate", late),
		"wait/readable":  labtest.Object("race-01", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 500} }),
	}, map[string]labtest.Question{
		"hasty": {Alter: stored("ask", map[string]int{"v1beta1": 12}), Right: "new"},
		"wait":  {Alter: stored("migrate", late), Right: "some"},
	})
}
