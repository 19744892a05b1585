package pitfalls_test

import (
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
	"github.com/crdlab/crdlab/lab/verdict"
)

func TestRatcheting(t *testing.T) {
	holds(t, pitfalls.Ratcheting, map[string]labtest.Alteration{
		"stricter/record":    labtest.Record("v1alpha1"),
		"stricter/stored":    labtest.Count("v1beta1", 1),
		"stricter/repainted": patch("purple", func(x *evidence.Exchange) { x.Status = 422 }),
		"stricter/refused":   patch("21", func(x *evidence.Exchange) { x.Causes = nil }),

		"rewrite/echo":    labtest.Answered("PATCH", "v1beta1/namespaces/crdlab/widgets/echo", 422),
		"rewrite/charlie": labtest.Answered("PATCH", "v1beta1/namespaces/crdlab/widgets/charlie", 200),
		"rewrite/old":     labtest.Answered("PATCH", "v1alpha1/namespaces/crdlab/widgets/charlie", 422),
		"rewrite/stored":  labtest.Count("v1alpha1", 1),

		"restore/deleted":    labtest.Answered("DELETE", "/widgets/bravo", 404),
		"restore/refused":    labtest.Answered("POST", "/v1beta1/", 201),
		"restore/old":        labtest.Answered("POST", "/v1alpha1/", 422),
		"restore/there":      labtest.Object("bravo", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 404} }),
		"restore/restorable": labtest.Verdicts(finding(verdict.Restorable, verdict.Pass)),

		"way-back/mended size": labtest.ViewOf("bravo", "v1beta1", "spec", "size", 20),
		"way-back/mended tier": labtest.ViewOf("echo", "v1beta1", "spec", "tier", nil),
		"way-back/restorable":  labtest.Verdicts(finding(verdict.Restorable, verdict.Fail)),
	}, map[string]labtest.Question{
		"stricter": {Alter: patch("21", func(x *evidence.Exchange) { x.Status = 200 }), Right: "both"},
		"rewrite":  {Alter: labtest.Answered("PATCH", "v1beta1/namespaces/crdlab/widgets/charlie", 200), Right: "all"},
		"restore":  {Alter: labtest.Answered("POST", "/v1beta1/", 201), Right: "accepted"},
		"way-back": {Alter: labtest.Answered("PATCH", "/widgets/charlie", 422), Right: "refused"},
	})
}

// patched alters the patches that have a text in their body.
func patch(text string, change func(*evidence.Exchange)) labtest.Alteration {
	return labtest.Exchanges("/widgets/", func(x *evidence.Exchange) {
		if x.Method == "PATCH" && strings.Contains(x.Body, text) {
			change(x)
		}
	})
}

// finding alters how a finding of the verdict came out.
func finding(id string, result verdict.Result) func(*verdict.Verdict) {
	return func(v *verdict.Verdict) { v.Finding(id).Result = result }
}
