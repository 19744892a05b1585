package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestStorageSwitchRace(t *testing.T) {
	at := func(action string, byVersion map[string]int) labtest.Alteration {
		return during(action, func(o *evidence.Observation) { o.Stored.ByVersion = byVersion })
	}
	late := map[string]int{"v1alpha1": 1, "v1beta1": 11}
	holds(t, pitfalls.StorageSwitchRace, map[string]labtest.Alteration{
		"window/late and refused": labtest.Answered("POST", "/widgets", 404),
		"window/late and untried": labtest.NoExchanges("POST", "/widgets"),
		"window/tidied":           labtest.Count("v1alpha1", 1),

		"migrator/answered":  labtest.Answered("PATCH", "/widgets/race-03", 500),
		"migrator/late":      labtest.NoExchanges("PATCH", "/widgets/race"),
		"migrator/record":    labtest.Record("v1alpha1", "v1beta1"),
		"migrator/removable": labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }),
		"migrator/tidied":    labtest.Count("v1alpha1", 1),

		"wait/answered":  labtest.NoExchanges("PATCH", "/widgets/race"),
		"wait/none-late": at("migrate", late),
		"wait/readable":  labtest.Object("race-01", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 500} }),
	}, map[string]labtest.Question{
		"window":   {Alter: at("race", map[string]int{"v1beta1": 12}), Right: "new"},
		"migrator": {Alter: labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }), Right: "refused"},
		"wait":     {Alter: at("migrate", late), Right: "some"},
	})
}
