package migrate

import (
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// noDefault checks that an object shows no tier at the new version, although that version's schema has a default for it.
func noDefault(e lesson.Evidence) lesson.Outcome {
	v := e.After.Version(newVersion)
	if v == nil || !slices.Contains(v.Fields, "tier") {
		return lesson.Holds(false, "spec.tier in the schema of "+newVersion, "no such field")
	}
	view := e.After.Object(alpha).View(newVersion)
	if view == nil || view.Status != 200 {
		return lesson.Holds(false, "a view at "+newVersion, "none")
	}
	value, there := view.Field("spec", "tier")
	return lesson.Holds(!there, "no spec.tier", kit.OrNothing("spec.tier: ", value, there))
}

// teamApplies finds the team's server-side applies at the new version.
func teamApplies(e lesson.Evidence) []evidence.Exchange {
	var out []evidence.Exchange
	for _, x := range e.Exchanges {
		if x.Method == "PATCH" && x.ContentType == evidence.ApplyPatch && x.To(kit.ObjectPath(e, newVersion, charlie)) &&
			strings.Contains(x.Path, "fieldManager="+team) && !x.DryRun() {
			out = append(out, x)
		}
	}
	return out
}
