package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
	"github.com/crdlab/crdlab/lab/verdict"
)

func TestRestoredBytes(t *testing.T) {
	checks := map[string]labtest.Alteration{
		"backup/stored": labtest.Count("v1beta1", 1),
		"backup/record": labtest.Record("v1beta1"),

		"restored/bytes":  labtest.Count("v1alpha1", -1),
		"restored/record": labtest.Record("v1alpha1", "v1beta1"),
		"restored/old":    labtest.Answered("GET", "/widgets/alpha", 200),
		"restored/new":    labtest.Answered("GET", "/widgets/charlie", 500),
		"restored/list":   labtest.Answered("GET", "/widgets?limit", 200),
		"restored/found":  labtest.Verdicts(finding(verdict.StoredObjects, verdict.Pass)),
	}
	for id, alter := range inPlace {
		checks["migrated/"+id] = alter
	}
	holds(t, pitfalls.RestoredBytes, checks, map[string]labtest.Question{
		"backup":   {Alter: labtest.Count("v1beta1", 5), Right: "each"},
		"migrated": {Alter: labtest.Verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Incomplete }), Right: "incomplete"},
		"restored": {Alter: labtest.Answered("GET", "/widgets/alpha", 404), Right: "missing"},
		"way-back": {Alter: func(e *lesson.Evidence) {
			e.During = nil
			labtest.Record("v1alpha1", "v1beta1")(e)
		}, Right: "both"},
	}, "restored")
}
