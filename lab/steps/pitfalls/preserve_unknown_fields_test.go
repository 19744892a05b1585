package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
	"github.com/crdlab/crdlab/lab/verdict"
)

func TestPreserveUnknownFields(t *testing.T) {
	holds(t, pitfalls.PreserveUnknownFields, map[string]labtest.Alteration{
		"kept/stored":     labtest.Count("v1beta1", 1),
		"kept/typo":       labtest.Exchanges("fieldValidation=Strict", func(x *evidence.Exchange) { x.Status = 400 }),
		"kept/typo quiet": labtest.Exchanges("fieldValidation=Strict", func(x *evidence.Exchange) { x.Warnings = []string{"unknown field"} }),
		"kept/kept":       labtest.BytesOf("bravo", "spec", "colour", nil),
		"kept/owner":      labtest.BytesOf("alpha", "spec", "owner", nil),

		"two-windows/hidden":     labtest.ViewOf("alpha", "v1beta1", "spec", "owner", "team-a"),
		"two-windows/hidden old": labtest.ViewOf("alpha", "v1alpha1", "spec", "owner", nil),
		"two-windows/strict":     labtest.Answered("POST", "/v1beta1/", 201),
		"two-windows/written":    labtest.Answered("PATCH", "/widgets/delta", 422),
		"two-windows/lost":       labtest.ViewOf("delta", "v1alpha1", "spec", "owner", "team-b"),
		"two-windows/stored":     labtest.Count("v1beta1", 1),

		"turned-off/hidden":  labtest.ViewOf("alpha", "v1alpha1", "spec", "owner", "team-a"),
		"turned-off/stored":  labtest.BytesOf("alpha", "spec", "owner", nil),
		"turned-off/written": labtest.Answered("PATCH", "/widgets/echo", 422),
		"turned-off/lost":    labtest.BytesOf("echo", "spec", "owner", "team-a"),
		"turned-off/found":   labtest.Verdicts(finding(verdict.RoundTrip, verdict.Pass)),

		"way-back/owner":        labtest.ViewOf("alpha", "v1beta1", "spec", "owner", nil),
		"way-back/mended color": labtest.ViewOf("bravo", "v1beta1", "spec", "color", nil),
		"way-back/mended owner": labtest.ViewOf("echo", "v1beta1", "spec", "owner", nil),
	}, map[string]labtest.Question{
		"kept":        {Alter: labtest.Exchanges("fieldValidation=Strict", func(x *evidence.Exchange) { x.Warnings = []string{"unknown field"} }), Right: "warned"},
		"two-windows": {Alter: labtest.ViewOf("delta", "v1alpha1", "spec", "owner", "team-b"), Right: "kept"},
		"turned-off":  {Alter: labtest.BytesOf("alpha", "spec", "owner", nil), Right: "lost"},
		"way-back":    {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "owner", nil), Right: "lost"},
	})
}
