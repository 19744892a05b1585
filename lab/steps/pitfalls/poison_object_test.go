package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestPoisonObject(t *testing.T) {
	holds(t, pitfalls.PoisonObject, map[string]labtest.Alteration{
		"served/stored":   labtest.Count("v1alpha1", -1),
		"served/strategy": labtest.Strategy("None"),
		"served/other":    labtest.Answered("GET", "/widgets/alpha", 500),
		"served/list":     labtest.Answered("GET", "/widgets?limit", 200),
		"served/watch":    labtest.Answered("GET", "watch=1", 200),

		"found/list":          labtest.Answered("GET", "/widgets?limit", 500),
		"found/one":           labtest.Answered("GET", "/widgets/charlie", 200),
		"found/one and alpha": labtest.Answered("GET", "/widgets/alpha", 500),
		"found/one and bravo": labtest.Answered("GET", "/widgets/bravo", 500),
		"found/one and delta": labtest.Answered("GET", "/widgets/delta", 500),
		"found/one and echo":  labtest.NoExchanges("GET", "/widgets/echo"),
		"found/bytes":         labtest.Written("charlie"),

		"way-back/mended":   labtest.Answered("PATCH", "v1alpha1/namespaces/crdlab/widgets/charlie", 500),
		"way-back/strategy": labtest.Strategy("Webhook"),
	}, map[string]labtest.Question{
		"served":   {Alter: labtest.Answered("GET", "/widgets?limit", 200), Right: "others"},
		"found":    {Alter: labtest.Answered("GET", "/widgets?limit", 500), Right: "error"},
		"way-back": {Alter: labtest.Answered("PATCH", "v1alpha1/namespaces/crdlab/widgets/charlie", 500), Right: "refused"},
	})
}
