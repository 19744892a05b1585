package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestSSAAfterRemoval(t *testing.T) {
	holds(t, pitfalls.SSAAfterRemoval, map[string]labtest.Alteration{
		"clean/stored":             labtest.Count("v1alpha1", 1),
		"clean/record":             labtest.Record("v1alpha1", "v1beta1"),
		"clean/removed":            labtest.Version("v1beta1", func(v *evidence.Version) { v.Name = "v1alpha1" }),
		"clean/owners of team":     unowned("alpha", "team"),
		"clean/owners of platform": unowned("alpha", "platform"),
		"clean/left":               labelled("alpha", "v1beta1"),
		"clean/spared":             labelled("delta", "v1alpha1"),

		"broken/alpha":     labtest.Exchanges("fieldManager=team", ok),
		"broken/forced":    labtest.Exchanges("fieldManager=team&force=true", ok),
		"broken/newcomer":  labtest.Exchanges("fieldManager=auditor", ok),
		"broken/delta":     labtest.Answered("PATCH", "/widgets/delta", 500),
		"broken/patch":     labtest.ViewOf("echo", "v1beta1", "spec", "color", "white"),
		"broken/untracked": unowned("echo", "platform"),

		"repairs/reset":     labtest.Object("bravo", func(o *evidence.Object) { o.Managers = []evidence.Manager{{Manager: "team"}} }),
		"repairs/conflict":  labtest.Answered("PATCH", "/widgets/bravo", 200),
		"repairs/one-entry": labtest.Answered("PATCH", "/widgets/charlie", 422),
		"repairs/kept":      labelled("charlie", "v1beta1"),
		"repairs/charlie":   labtest.Answered("PATCH", "/widgets/charlie", 200),

		"way-back/labels":             labelled("alpha", "v1alpha1"),
		"way-back/alpha":              labtest.Answered("PATCH", "/widgets/alpha", 409),
		"way-back/owners of team":     unowned("alpha", "team"),
		"way-back/owners of platform": unowned("alpha", "platform"),
		"way-back/bravo":              unowned("bravo", "team"),
	}, map[string]labtest.Question{
		"clean": {Alter: func(e *lesson.Evidence) {
			for _, o := range e.After.Objects {
				labelled(o.Name, "v1beta1")(e)
			}
		}, Right: "nothing"},
		"broken":   {Alter: labtest.Answered("PATCH", "/widgets/alpha", 409), Right: "conflict"},
		"repairs":  {Alter: labtest.Answered("PATCH", "/widgets/bravo", 200), Right: "accepted"},
		"way-back": {Alter: labtest.Answered("PATCH", "/widgets/alpha", 500), Right: "refused"},
	})
}

func ok(x *evidence.Exchange) { x.Status = 200 }

// labelled has every entry of an object name a version.
func labelled(object, version string) labtest.Alteration {
	return labtest.ManagersOf(object, func(m *evidence.Manager) { m.APIVersion = "lab.example.com/" + version })
}

// unowned takes away what a manager owns of an object.
func unowned(object, manager string) labtest.Alteration {
	return labtest.ManagersOf(object, func(m *evidence.Manager) {
		if m.Manager == manager {
			m.Fields = nil
		}
	})
}
