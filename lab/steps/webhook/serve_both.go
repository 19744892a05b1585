package webhook

import (
	"context"
	"fmt"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func serveBoth() lesson.Step {
	const step = "serve-both"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/none-rename", "pitfalls/webhook-outage"},
		Actions: []lesson.Action{{
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "crd"); err != nil {
					return err
				}
				return kit.Until(ctx, env, env.Path(newVersion, alpha), kit.Answers(http.StatusOK))
			},
			Kubectl: kit.FromManifest("kubectl apply", step, "crd"),
			Change:  kit.Lines("+ spec.versions[v1beta1]  served, not storage", "+ spec.displayName in its schema", "~ spec.conversion.strategy  Webhook"),
		}, {
			ID:      "read",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, newVersion, alpha) },
			Kubectl: kit.Kubectl("sleep 1; kubectl get NEW alpha -o yaml"),
			Change:  kit.Lines("  GET alpha at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"label", "displayName", "neither"},
			Answer: func(e lesson.Evidence) (string, error) {
				v := e.After.Object(alpha).View(newVersion)
				_, old := v.Field("spec", oldField)
				_, renamed := v.Field("spec", newField)
				return kit.Choose([]string{"label", "displayName", "neither"}, old, renamed, v != nil && v.Status == http.StatusOK)
			},
		},
		Checks: []lesson.Check{
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("Webhook")},
			{ID: "served", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("served, not storage", kit.Flags(e, newVersion))
			}},
			{ID: "renamed", Kind: lesson.Done, Eval: sameValue},
			{ID: "reviewed", Kind: lesson.Done, Eval: kit.All("alpha was read, and reviewed", kit.Answered(http.MethodGet, newVersion, alpha, 2), reviewed(newVersion))},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
			{ID: "record", Kind: lesson.Invariant, Eval: kit.Record(oldVersion)},
		},
		Wrong: []lesson.Diagnosis{
			kit.Written(),
			{ID: "none", Seen: func(e lesson.Evidence) bool {
				return e.After.Version(newVersion) != nil && e.After.CRD.Strategy == "None"
			}},
			{ID: "unreachable", Seen: func(e lesson.Evidence) bool {
				return e.After.Version(newVersion) != nil && e.Status(alpha, newVersion) >= 500
			}},
			{ID: "nobody-asked", Seen: func(e lesson.Evidence) bool {
				return e.After.Version(newVersion) != nil && len(e.Conversions) == 0
			}},
		},
		Lasts: func(o *evidence.Observation) bool { v := o.Version(newVersion); return v != nil && v.Served },
	}
}

// sameValue checks that every object shows one value under two names.
func sameValue(e lesson.Evidence) lesson.Outcome {
	const want = "one value, as " + oldField + " and as " + newField
	if len(e.After.Objects) == 0 {
		return kit.Holds(false, want, "no objects")
	}
	for _, o := range e.After.Objects {
		old, isOld := o.View(oldVersion).Field("spec", oldField)
		renamed, isNew := o.View(newVersion).Field("spec", newField)
		if !isOld || !isNew || old != renamed {
			return kit.Holds(false, want, fmt.Sprintf("%s: %s, %s", o.Name, kit.OrNothing(oldField+": ", old, isOld), kit.OrNothing(newField+": ", renamed, isNew)))
		}
	}
	return kit.Holds(true, want, want)
}

// reviewed checks that the webhook was asked for a version and answered well.
func reviewed(version string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		want := "a review to " + version + ", with success"
		for _, c := range kit.ConversionsTo(e, version, "") {
			if c.Result == evidence.ConversionSuccess {
				return kit.Holds(true, want, want)
			}
		}
		return kit.Holds(false, want, "none")
	}
}
