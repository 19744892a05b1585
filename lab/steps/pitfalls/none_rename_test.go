package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
	"github.com/crdlab/crdlab/lab/verdict"
)

func TestNoneRename(t *testing.T) {
	holds(t, pitfalls.NoneRename, map[string]labtest.Alteration{
		"hidden/switched":   labtest.Version("v1beta1", func(v *evidence.Version) { v.Storage = false }),
		"hidden/hidden":     labtest.ViewOf("alpha", "v1beta1", "spec", "paint", "red"),
		"hidden/hidden too": labtest.ViewOf("alpha", "v1beta1", "spec", "color", "red"),
		"hidden/seen":       labtest.ViewOf("alpha", "v1alpha1", "spec", "color", nil),
		"hidden/bytes":      labtest.BytesOf("alpha", "spec", "color", nil),
		"hidden/foretold": labtest.Verdicts(func(v *verdict.Verdict) {
			for i := range v.Findings {
				v.Findings[i].Result = verdict.Pass
			}
		}),

		"lost/strict": labtest.Exchanges("fieldValidation=Strict", func(x *evidence.Exchange) { x.Warnings = []string{"a field is lost"} }),
		"lost/alpha":  labtest.BytesOf("alpha", "spec", "color", "red"),
		"lost/bravo":  labtest.BytesOf("bravo", "spec", "paint", "green"),
		"lost/others": labtest.Written("charlie"),

		"way-back/shown":    labtest.Exchanges("v1beta1/namespaces/crdlab/widgets/charlie", func(x *evidence.Exchange) { x.Response = "{}" }),
		"way-back/saved":    labtest.ViewOf("delta", "v1beta1", "spec", "paint", "pink"),
		"way-back/restored": labtest.ViewOf("bravo", "v1beta1", "spec", "paint", nil),
	}, map[string]labtest.Question{
		"hidden":   {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "paint", "red"), Right: "renamed"},
		"lost":     {Alter: labtest.ViewOf("bravo", "v1alpha1", "spec", "color", "green"), Right: "old"},
		"way-back": {Alter: func(e *lesson.Evidence) { e.Exchanges = nil }, Right: ""},
	})
}
