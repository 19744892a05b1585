package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestDowngrade(t *testing.T) {
	taken := labtest.Answered("PATCH", "customresourcedefinitions", 200)
	answeredGold := labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Response = `{"spec":{"tier":"gold"}}` })
	holds(t, pitfalls.Downgrade, map[string]labtest.Alteration{
		"refused/stored":  labtest.Count("v1beta1", 1),
		"refused/record":  labtest.Record("v1alpha1"),
		"refused/refused": taken,

		"loss/stored":  labtest.Count("v1beta1", -1),
		"loss/gold":    labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"),
		"loss/storage": labtest.Version("v1alpha1", func(v *evidence.Version) { v.Storage = false }),
		"loss/lost":    answeredGold,

		"way-back/lost":     labtest.BytesOf("alpha", "spec", "tier", "gold"),
		"way-back/stored":   labtest.Count("v1beta1", 1),
		"way-back/removed":  labtest.Version("v1alpha1", func(v *evidence.Version) { v.Name = "v1beta1" }),
		"way-back/readable": labtest.Object("alpha", func(o *evidence.Object) { o.Views["v1alpha1"] = &evidence.View{Status: 500} }),
	}, map[string]labtest.Question{
		"refused":  {Alter: taken, Right: "accepted"},
		"loss":     {Alter: answeredGold, Right: "gold"},
		"way-back": {Alter: labtest.Answered("PATCH", "customresourcedefinitions", 422), Right: "refused"},
	})
}
