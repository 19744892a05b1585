package migrate

import (
	"context"
	"net/http"
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func addNew() lesson.Step {
	const step = "add-v1beta1"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/none-rename", "pitfalls/default-drift", "pitfalls/ratcheting"},
		Actions: []lesson.Action{{
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "crd"); err != nil {
					return err
				}
				return kit.Until(ctx, env, env.Path(newVersion, alpha), kit.Answers(http.StatusOK))
			},
			Kubectl: kit.FromManifest("kubectl apply", step, "crd"),
			Change:  kit.Lines("+ spec.versions[v1beta1]  served, not storage", "+ spec.tier in its schema, default: standard"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"not-found", "default", "no-default"},
			Answer: func(e lesson.Evidence) (string, error) {
				v := e.After.Object(alpha).View(newVersion)
				_, tier := v.Field("spec", "tier")
				return kit.Choose([]string{"not-found", "default", "no-default"},
					v != nil && v.Status == http.StatusNotFound, v != nil && tier, v != nil && v.Status == http.StatusOK && !tier)
			},
		},
		Checks: []lesson.Check{
			{ID: "served", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("served, not storage", kit.Flags(e, newVersion))
			}},
			{ID: "one-object", Kind: lesson.Done, Eval: oneObject},
			{ID: "only-the-label", Kind: lesson.Done, Eval: onlyTheLabel},
			{ID: "no-default", Kind: lesson.Done, Eval: noDefault},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
			{ID: "record", Kind: lesson.Invariant, Eval: kit.Record(oldVersion)},
		},
		Wrong: []lesson.Diagnosis{
			kit.Written(),
			{ID: "no-tier", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(newVersion)
				return v != nil && !slices.Contains(v.Fields, "tier")
			}},
		},
		Lasts: func(o *evidence.Observation) bool { v := o.Version(newVersion); return v != nil && v.Served },
	}
}

// oneObject checks that both views of alpha have one resourceVersion.
func oneObject(e lesson.Evidence) lesson.Outcome {
	o := e.After.Object(alpha)
	was, is := kit.ResourceVersion(o.View(oldVersion)), kit.ResourceVersion(o.View(newVersion))
	return lesson.Holds(was != "" && was == is, "one resourceVersion in both views", oldVersion+": "+kit.OrNone(was)+", "+newVersion+": "+kit.OrNone(is))
}

// onlyTheLabel checks that the two views of every object differ in their apiVersion alone.
func onlyTheLabel(e lesson.Evidence) lesson.Outcome {
	const want = "views that differ in apiVersion alone"
	if len(e.After.Objects) == 0 {
		return lesson.Holds(false, want, "no objects")
	}
	for _, o := range e.After.Objects {
		a, b := o.View(oldVersion), o.View(newVersion)
		if a == nil || b == nil || a.Status != 200 || b.Status != 200 {
			return lesson.Holds(false, want, o.Name+" has not both views")
		}
		if !kit.SameBut(a.Object, b.Object, "apiVersion") {
			return lesson.Holds(false, want, "those of "+o.Name+" differ in more")
		}
	}
	return lesson.Holds(true, want, want)
}
