package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestFlipBack(t *testing.T) {
	storage := labtest.Version("v1alpha1", func(v *evidence.Version) { v.Storage = false })
	holds(t, pitfalls.FlipBack, map[string]labtest.Alteration{
		"flip/answered": labtest.Answered("PATCH", "/widgets/charlie", 409),
		"flip/mixed":    labtest.Count("v1beta1", 3),
		"flip/storage":  storage,

		"unguarded/record":    labtest.Record("v1alpha1", "v1beta1"),
		"unguarded/storage":   storage,
		"unguarded/removable": labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }),
		"unguarded/bytes":     labtest.Written("alpha"),

		"guarded/answered": labtest.Answered("PATCH", "/widgets/echo", 500),
		"guarded/refused":  labtest.Answered("PATCH", "/status", 200),
		"guarded/record":   labtest.Record("v1beta1"),
		"guarded/mixed":    labtest.Count("v1alpha1", -3),
	}, map[string]labtest.Question{
		"flip":      {Alter: func(e *lesson.Evidence) { e.After.Stored.ByVersion = map[string]int{"v1beta1": 5} }, Right: "new"},
		"unguarded": {Alter: labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }), Right: "removal"},
		"guarded":   {Alter: labtest.Answered("PATCH", "/status", 200), Right: "accepted"},
		"way-back":  {Alter: labtest.Answered("PATCH", "/status", 422), Right: "refused"},
	})
}
