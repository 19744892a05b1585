package webhook_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/webhook"
	"github.com/crdlab/crdlab/lab/verdict"
)

// listing is in the path of a list, and in that of no object.
const listing = "/widgets?"

// answer makes the webhook answer without what a fault of it adds.
func answer(body string) func(*evidence.Conversion) {
	return func(c *evidence.Conversion) { c.Response = body }
}

var (
	nothing = answer(`{"response":{"convertedObjects":[{"metadata":{"name":"delta"},"spec":{}}]}}`)
	failed  = func(c *evidence.Conversion) { c.Result = evidence.ConversionFailed }
	gone    = func(o *evidence.Object) { o.Name = "another" }
)

// response changes what the server answered to a read.
func response(path, body string) labtest.Alteration {
	return labtest.Exchanges(path, func(x *evidence.Exchange) { x.Response = body })
}

// checks has for every check an alteration of true evidence that it must notice, and more than one where it checks several
// things.
var checks = map[string]labtest.Alteration{
	"create/stored":             labtest.Count("v1alpha1", -1),
	"create/record":             labtest.Record("v1alpha1", "v1beta1"),
	"create/team":               labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Manager = "somebody" }),
	"create/none refused":       labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }),
	"create/none warned":        labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Warnings = []string{"the schemas differ"} }),
	"create/nothing-came-of-it": labtest.Version("v1alpha1", func(v *evidence.Version) { v.Name = "v1beta1" }),

	"serve-both/strategy":          labtest.Strategy("None"),
	"serve-both/served":            labtest.Version("v1beta1", func(v *evidence.Version) { v.Served = false }),
	"serve-both/served as storage": labtest.Version("v1beta1", func(v *evidence.Version) { v.Storage = true }),
	"serve-both/renamed":           labtest.ViewOf("bravo", "v1beta1", "spec", "displayName", "another"),
	"serve-both/renamed lost":      labtest.ViewOf("bravo", "v1beta1", "spec", "displayName", nil),
	"serve-both/reviewed":          labtest.Conversions("v1beta1", failed),
	"serve-both/reviewed never":    labtest.NoConversions,
	"serve-both/reviewed unread":   labtest.NoExchanges(http.MethodGet, "/v1beta1/"),
	"serve-both/bytes":             labtest.Written("delta"),
	"serve-both/record":            labtest.Record("v1alpha1", "v1beta1"),

	"one-object-two-views/one-revision":                labtest.ViewOf("alpha", "v1beta1", "metadata", "resourceVersion", "1"),
	"one-object-two-views/same-value":                  labtest.ViewOf("echo", "v1alpha1", "spec", "label", "another"),
	"one-object-two-views/both-ways to v1alpha1":       labtest.Conversions("v1alpha1", failed),
	"one-object-two-views/both-ways to v1beta1":        labtest.Conversions("v1beta1", failed),
	"one-object-two-views/one-each":                    labtest.Conversions("v1beta1", func(c *evidence.Conversion) { c.Objects = 5 }),
	"one-object-two-views/one-each of none":            labtest.NoConversions,
	"one-object-two-views/every-operation get-stored":  labtest.Answered(http.MethodGet, "/v1alpha1/", 500),
	"one-object-two-views/every-operation get-other":   labtest.Answered(http.MethodGet, "/v1beta1/namespaces/crdlab/widgets/alpha", 500),
	"one-object-two-views/every-operation list":        labtest.Answered(http.MethodGet, "limit=", 429),
	"one-object-two-views/every-operation list-cached": labtest.NoExchanges(http.MethodGet, "resourceVersion=0"),
	"one-object-two-views/every-operation create":      labtest.Answered(http.MethodPost, "/v1alpha1/", 500),
	"one-object-two-views/every-operation create-both": labtest.Answered(http.MethodPost, "/v1beta1/", 500),
	"one-object-two-views/every-operation patch":       labtest.Answered(http.MethodPatch, "/hotel", 409),
	"one-object-two-views/every-operation delete":      labtest.NoExchanges(http.MethodDelete, "/hotel"),
	"one-object-two-views/every-operation tidy":        labtest.NoExchanges(http.MethodDelete, "/golf"),
	"one-object-two-views/bytes":                       labtest.Written("bravo"),

	"prune-after-convert/answered-with":               labtest.Conversions("v1beta1", nothing),
	"prune-after-convert/answered-with for the write": labtest.Conversions("v1alpha1", nothing),
	"prune-after-convert/not-shown":                   response("/alpha", `{"spec":{"displayName":"Front door","undeclared":"x"}}`),
	"prune-after-convert/not-shown unread":            labtest.Answered(http.MethodGet, "/alpha", 500),
	"prune-after-convert/not-stored":                  labtest.BytesOf("echo", "spec", "undeclared", "x"),
	"prune-after-convert/not-stored unwritten": func(e *lesson.Evidence) {
		e.After.Object("echo").ResourceVersion = e.Before.Object("echo").ResourceVersion
	},
	"prune-after-convert/labels-taken":               response("/bravo", `{"metadata":{"labels":{},"annotations":{"crdlab.dev/added-by":"webhook"}}}`),
	"prune-after-convert/labels-taken annotations":   response("/bravo", `{"metadata":{"labels":{"crdlab.dev/added-by":"webhook"}}}`),
	"prune-after-convert/finalizers-ignored":         response("/charlie", `{"metadata":{"finalizers":["crdlab.dev/added-by"]}}`),
	"prune-after-convert/finalizers-ignored unasked": labtest.Conversions("v1beta1", nothing),
	"prune-after-convert/finalizers-ignored unread":  labtest.Answered(http.MethodGet, "/charlie", 500),
	"prune-after-convert/name-refused":               labtest.Answered(http.MethodGet, "/delta", 200),
	"prune-after-convert/name-refused unchanged":     labtest.Conversions("v1beta1", nothing),
	"prune-after-convert/healed":                     labtest.ViewOf("delta", "v1beta1", "spec", "displayName", "another"),

	"switch-storage/record":                 labtest.Record("v1alpha1"),
	"switch-storage/new-bytes":              labtest.StoredAs("foxtrot", "v1alpha1"),
	"switch-storage/new-bytes without name": labtest.BytesOf("foxtrot", "spec", "displayName", nil),
	"switch-storage/old-bytes":              labtest.Written("alpha"),
	"switch-storage/same-value":             labtest.ViewOf("foxtrot", "v1alpha1", "spec", "label", nil),

	"update-one/one-moved":          labtest.Count("v1beta1", 1),
	"update-one/alpha":              labtest.StoredAs("alpha", "v1alpha1"),
	"update-one/alpha without name": labtest.BytesOf("alpha", "spec", "displayName", nil),
	"update-one/others":             labtest.Written("bravo"),
	"update-one/converted":          labtest.NoConversions,

	"stop-serving/flag":      labtest.Version("v1alpha1", func(v *evidence.Version) { v.Served = true }),
	"stop-serving/asked-old": labtest.Answered(http.MethodGet, "/v1alpha1/", 410),
	"stop-serving/asked-new": labtest.Answered(http.MethodGet, "/v1beta1/", 500),
	"stop-serving/still-old": labtest.StoredAs("delta", "v1beta1"),
	"stop-serving/record":    labtest.Record("v1beta1"),

	"outage/new-works read":     labtest.Answered(http.MethodGet, "/foxtrot", 500),
	"outage/new-works create":   labtest.Answered(http.MethodPost, "/v1beta1/", 500),
	"outage/old-fails read":     labtest.Answered(http.MethodGet, "/delta", 200),
	"outage/old-fails apply":    labtest.Answered(http.MethodPatch, "/charlie", 200),
	"outage/old-fails delete":   labtest.Answered(http.MethodDelete, "/echo", 200),
	"outage/from-cache":         labtest.NoExchanges(http.MethodGet, listing),
	"outage/from-cache missing": response(listing, `{"items":[{"metadata":{"name":"foxtrot"}}]}`),
	"outage/patched":            labtest.StoredAs("delta", "v1alpha1"),
	"outage/patched nameless":   labtest.BytesOf("delta", "spec", "displayName", nil),
	"outage/patched never":      labtest.NoExchanges(http.MethodPatch, "/delta"),
	"outage/healed":             labtest.Object("echo", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 500} }),
	"outage/nothing-lost":       labtest.Count("v1alpha1", -1),

	"rewrite/stored":          labtest.Count("v1alpha1", 1),
	"rewrite/renamed":         labtest.BytesOf("echo", "spec", "displayName", nil),
	"rewrite/labels":          labtest.ManagersOf("bravo", func(m *evidence.Manager) { m.APIVersion = "lab.example.com/v1alpha1" }),
	"rewrite/same-value":      labtest.ViewOf("echo", "v1beta1", "spec", "displayName", "another"),
	"rewrite/same-value gone": labtest.Object("echo", gone),
	"rewrite/owner":           labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Fields = json.RawMessage(`{"f:spec":{"f:displayName":{}}}`) }),
	"rewrite/owner gone":      labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Manager = "somebody" }),
	"rewrite/record":          labtest.Record("v1beta1"),

	"attempt-removal/refused":          labtest.Exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Status, x.Causes = 200, nil }),
	"attempt-removal/refused by field": labtest.Exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Causes = nil }),
	"attempt-removal/nothing-stored":   labtest.Count("v1alpha1", 1),
	"attempt-removal/still-there":      labtest.NoVersion("v1alpha1"),

	"clean-up/record":          labtest.Record("v1alpha1", "v1beta1"),
	"clean-up/removed":         labtest.Version("v1beta1", func(v *evidence.Version) { v.Name = "v1alpha1" }),
	"clean-up/strategy":        labtest.Strategy("Webhook"),
	"clean-up/applied":         labtest.Answered(http.MethodPatch, "/charlie", 409),
	"clean-up/applied nothing": labtest.NoExchanges(http.MethodPatch, "/charlie"),
	"clean-up/owner":           labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Fields = json.RawMessage(`{"f:spec":{"f:label":{}}}`) }),
	"clean-up/all-there":       labtest.Count("v1beta1", -1),

	"verify/complete":       labtest.Verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Incomplete }),
	"verify/findings":       labtest.Verdicts(func(v *verdict.Verdict) { v.Findings[0].Result = verdict.Warn }),
	"verify/answers":        labtest.Answered(http.MethodGet, "/echo", 500),
	"verify/answers unread": labtest.NoExchanges(http.MethodGet, "/alpha"),
	"verify/answers list":   labtest.Answered(http.MethodGet, listing, 500),
	"verify/strategy":       labtest.Strategy("Webhook"),
}

// questions has for every question an alteration that must change the answer, and the option that is right then.
var questions = map[string]labtest.Question{
	"create":               {Alter: labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 422 }), Right: "refused"},
	"serve-both":           {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "displayName", nil), Right: "neither"},
	"one-object-two-views": {Alter: labtest.Calls("list-other", 5), Right: "call-each"},
	"prune-after-convert":  {Alter: response("/alpha", `{"spec":{"undeclared":"x"}}`), Right: "shown"},
	"switch-storage":       {Alter: labtest.BytesOf("alpha", "spec", "displayName", "Front door"), Right: "both"},
	"update-one":           {Alter: labtest.Count("v1beta1", -1), Right: "none"},
	"stop-serving":         {Alter: labtest.Object("delta", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 404} }), Right: "not-found"},
	"outage":               {Alter: labtest.Answered(http.MethodPatch, "/delta", 500), Right: "refused"},
	"rewrite":              {Alter: labtest.ManagersOf("charlie", func(m *evidence.Manager) { m.Fields = json.RawMessage(`{"f:spec":{"f:displayName":{}}}`) }), Right: "renamed"},
	"attempt-removal":      {Alter: labtest.Exchanges("customresourcedefinitions", func(x *evidence.Exchange) { x.Status = 200 }), Right: "accepted"},
	"clean-up":             {Alter: labtest.Answered(http.MethodPatch, "/charlie", 409), Right: "conflict"},
	"verify":               {Alter: labtest.Verdicts(func(v *verdict.Verdict) { v.Verdict = verdict.Incomplete }), Right: "incomplete"},
}

func TestAlteredEvidenceChangesEveryCheckAndAnswer(t *testing.T) {
	t.Parallel()
	labtest.Altered(t, webhook.Track(), checks, questions)
}
