package pitfalls_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

func TestStuckDeletion(t *testing.T) {
	deletion := func(says string) labtest.Alteration {
		return func(e *lesson.Evidence) { e.After.CRD.Conditions = map[string]string{"Terminating": says} }
	}
	allGone := func(e *lesson.Evidence) {
		e.After.CRD, e.After.Objects = nil, nil
		e.After.Stored.Total, e.After.Stored.ByVersion = 0, nil
	}
	holds(t, pitfalls.StuckDeletion, map[string]labtest.Alteration{
		"trimmed/stored":     labtest.Count("v1alpha1", -1),
		"trimmed/record":     labtest.Record("v1alpha1", "v1beta1"),
		"trimmed/removed":    labtest.Version("v1beta1", func(v *evidence.Version) { v.Name = "v1alpha1" }),
		"trimmed/unreadable": labtest.Object("alpha", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 200} }),

		"deleted/stuck":        deletion("True InstanceDeletionInProgress"),
		"deleted/stuck of all": func(e *lesson.Evidence) { e.After.CRD.Terminating = false },
		"deleted/create":       labtest.Answered("POST", "/customresourcedefinitions", 201),
		"deleted/foxtrot":      labtest.Answered("POST", "/widgets", 201),
		"deleted/apply":        labtest.Answered("PATCH", "/customresourcedefinitions", 409),
		"deleted/bytes":        labtest.Written("alpha"),

		"hold/held":             deletion("True InstanceDeletionInProgress"),
		"hold/held by webhook":  labtest.Strategy("None"),
		"hold/saved":            labtest.Answered("GET", "/widgets?limit", 500),
		"hold/saved by whom":    labtest.NoExchanges("GET", "/widgets?limit"),
		"hold/bytes":            labtest.Written("alpha"),
		"way-back/anew":         func(e *lesson.Evidence) { e.After.Object("alpha").UID = e.Before.Object("alpha").UID },
		"way-back/same":         labtest.ViewOf("alpha", "v1beta1", "spec", "size", 8),
		"way-back/same to name": labtest.ViewOf("alpha", "v1beta1", "spec", "color", nil),
	}, map[string]labtest.Question{
		"trimmed":  {Alter: labtest.Object("alpha", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 200} }), Right: "readable"},
		"deleted":  {Alter: allGone, Right: "gone"},
		"hold":     {Alter: allGone, Right: "goes-on"},
		"way-back": {Alter: func(e *lesson.Evidence) { e.After.CRD.UID = e.Before.CRD.UID }, Right: "alive"},
	})
}
