package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestEarlyTrim(t *testing.T) {
	holds(t, pitfalls.EarlyTrim, map[string]labtest.Alteration{
		"half-way/stored":  labtest.Count("v1alpha1", -1),
		"half-way/record":  labtest.Record("v1beta1"),
		"half-way/refused": labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status, x.Causes = 200, nil }),

		"trim/record":  labtest.Record("v1alpha1", "v1beta1"),
		"trim/removed": func(e *lesson.Evidence) { e.After.CRD = e.Before.CRD },
		"trim/bytes":   labtest.Written("alpha"),

		"broken/new":        labtest.Answered("GET", "/widgets/foxtrot", 500),
		"broken/old":        labtest.Answered("GET", "/widgets/alpha", 200),
		"broken/list":       labtest.Answered("GET", "/widgets?limit", 200),
		"broken/watch":      labtest.Exchanges("watch=1", func(x *evidence.Exchange) { x.Status = 200 }),
		"broken/delete-crd": labtest.Answered("DELETE", "customresourcedefinitions", 500),
		"broken/create":     labtest.Answered("POST", "/widgets", 201),
		"broken/delete":     labtest.Answered("DELETE", "/widgets/alpha", 200),
		"broken/bytes":      labtest.Written("alpha"),
	}, map[string]labtest.Question{
		"half-way": {Alter: labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 200 }), Right: "accepted"},
		"trim":     {Alter: labtest.Exchanges("/status", func(x *evidence.Exchange) { x.Status = 422 }), Right: "counts"},
		"broken":   {Alter: labtest.Answered("GET", "/widgets?limit", 200), Right: "others"},
		"way-back": {Alter: labtest.Answered("GET", "/widgets/alpha", 404), Right: "lost"},
	})
}
