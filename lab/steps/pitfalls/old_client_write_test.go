package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestOldClientWrite(t *testing.T) {
	warned := labtest.Exchanges("/widgets/alpha", func(x *evidence.Exchange) { x.Warnings = []string{"a field is lost"} })
	sees := labtest.Exchanges("v1alpha1/namespaces/crdlab/widgets/alpha", func(x *evidence.Exchange) { x.Response = `{"spec":{"tier":"gold"}}` })
	holds(t, pitfalls.OldClientWrite, map[string]labtest.Alteration{
		"read/switched": labtest.Version("v1beta1", func(v *evidence.Version) { v.Storage = false }),
		"read/stored":   labtest.BytesOf("bravo", "spec", "tier", "standard"),
		"read/read":     sees,

		"label/accepted": warned,
		"label/label":    labtest.ViewOf("alpha", "v1beta1", "metadata", "labels", nil),
		"label/erased":   labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "gold"),
		"label/bytes":    labtest.BytesOf("alpha", "spec", "tier", "gold"),
		"label/others":   labtest.Written("bravo"),

		"way-back/accepted": warned,
		"way-back/label":    labtest.ViewOf("alpha", "v1beta1", "metadata", "labels", map[string]any{"team": "blue"}),
		"way-back/kept":     labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"),
	}, map[string]labtest.Question{
		"read":     {Alter: sees, Right: "value"},
		"label":    {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "gold"), Right: "kept"},
		"way-back": {Alter: labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"), Right: "erased"},
	})
}
