package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestWebhookOutage(t *testing.T) {
	holds(t, pitfalls.WebhookOutage, map[string]labtest.Alteration{
		"half-way/stored":   labtest.Count("v1alpha1", -1),
		"half-way/strategy": labtest.Strategy("None"),

		"down/works":                 labtest.Answered("GET", "v1beta1/namespaces/crdlab/widgets/foxtrot", 500),
		"down/works when written":    labtest.Answered("PATCH", "/widgets/foxtrot", 500),
		"down/fails":                 labtest.Answered("GET", "v1beta1/namespaces/crdlab/widgets/alpha", 200),
		"down/fails when applied":    labtest.Answered("PATCH", "/widgets/charlie", 200),
		"down/delete":                labtest.Answered("DELETE", "/widgets?dryRun", 200),
		"down/list":                  labtest.NoExchanges("GET", "/widgets?limit"),
		"down/client":                labtest.Answered("GET", "v1alpha1/namespaces/crdlab/widgets/alpha", 500),
		"down/client when it writes": labtest.Answered("PATCH", "v1alpha1/namespaces/crdlab/widgets/alpha", 200),

		"cure/strategy":          labtest.Strategy("Webhook"),
		"cure/look":              labtest.Answered("GET", "/widgets/alpha", 500),
		"cure/stored":            labtest.Count("v1alpha1", 1),
		"cure/renamed":           labtest.BytesOf("alpha", "spec", "displayName", nil),
		"cure/renamed with both": labtest.BytesOf("alpha", "spec", "label", "Front door"),
	}, map[string]labtest.Question{
		"half-way": {Alter: labtest.StoredAs("alpha", "v1beta1"), Right: "moved"},
		"down":     {Alter: labtest.Answered("PATCH", "/widgets/charlie", 200), Right: "both"},
		"cure":     {Alter: labtest.Exchanges("/widgets/alpha", func(x *evidence.Exchange) { x.Response = `{"spec":{}}` }), Right: "neither"},
		"way-back": {Alter: labtest.Verdicts(incomplete), Right: "incomplete"},
	}, "down")
}
