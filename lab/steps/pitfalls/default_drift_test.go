package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestDefaultDrift(t *testing.T) {
	planned := func(widget, plan string) labtest.Alteration {
		return labtest.ViewOf(widget, "v1beta1", "metadata", "labels", map[string]any{"plan": plan})
	}
	holds(t, pitfalls.DefaultDrift, map[string]labtest.Alteration{
		"two-plans/stored":   labtest.Count("v1beta1", 1),
		"two-plans/no-tier":  labtest.ViewOf("alpha", "v1beta1", "spec", "tier", "standard"),
		"two-plans/old-plan": planned("echo", "standard"),
		"two-plans/new-plan": planned("foxtrot", "unmetered"),

		"rewrite/bytes":           labtest.BytesOf("alpha", "spec", "tier", nil),
		"rewrite/bytes at an old": labtest.StoredAs("alpha", "v1alpha1"),
		"rewrite/new-plan":        planned("charlie", "unmetered"),
		"rewrite/old-plan":        planned("delta", "standard"),

		"changed-default/drifted": labtest.Exchanges("v1beta1/namespaces/crdlab/widgets/echo", func(x *evidence.Exchange) { x.Response = `{"spec":{"tier":"standard"}}` }),
		"changed-default/echo":    planned("echo", "standard"),
		"changed-default/alpha":   planned("alpha", "basic"),
		"changed-default/delta":   planned("delta", "basic"),
		"changed-default/three":   planned("echo", "unmetered"),

		"way-back/written":  labtest.BytesOf("foxtrot", "spec", "tier", "basic"),
		"way-back/one-plan": planned("echo", "basic"),
	}, map[string]labtest.Question{
		"two-plans":       {Alter: planned("foxtrot", "unmetered"), Right: "unmetered"},
		"rewrite":         {Alter: planned("alpha", "unmetered"), Right: "nothing"},
		"changed-default": {Alter: labtest.NoExchanges("GET", "/widgets/echo"), Right: "nobody"},
		"way-back":        {Alter: planned("delta", "unmetered"), Right: "stays"},
	})
}
