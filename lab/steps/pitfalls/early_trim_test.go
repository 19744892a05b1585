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

		"readers/new":           labtest.Answered("GET", "/widgets/foxtrot", 500),
		"readers/old":           labtest.Answered("GET", "/widgets/alpha", 200),
		"readers/list":          labtest.Answered("GET", "/widgets?limit", 200),
		"readers/watch":         labtest.Exchanges("watch=1", func(x *evidence.Exchange) { x.Status = 200 }),
		"hands-tied/delete-crd": labtest.Answered("DELETE", "customresourcedefinitions", 500),
		"hands-tied/create":     labtest.Answered("POST", "/widgets", 201),
		"hands-tied/delete":     labtest.Answered("DELETE", "/widgets/alpha", 200),
		"hands-tied/bytes":      labtest.Written("alpha"),
	}, map[string]labtest.Question{
		"half-way":   {Alter: labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 200 }), Right: "accepted"},
		"trim":       {Alter: labtest.Exchanges("/status", func(x *evidence.Exchange) { x.Status = 422 }), Right: "counts"},
		"hands-tied": {Alter: labtest.Answered("POST", "/widgets", 201), Right: "created"},
		"readers":    {Alter: labtest.Answered("GET", "/widgets?limit", 200), Right: "others"},
		"way-back":   {Alter: labtest.Answered("GET", "/widgets/alpha", 404), Right: "lost"},
	})
}
