package webhook

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func cleanUp() lesson.Step {
	const step = "clean-up"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/none-rename", "pitfalls/ssa-after-removal"},
		Show:   charlie,
		Actions: []lesson.Action{{
			ID:      "trim",
			Do:      kit.Trim,
			Kubectl: kit.TrimCommands,
			Change:  kit.Lines("- status.storedVersions  v1alpha1"),
		}, {
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, step, "crd") })
			},
			Kubectl: kit.PatchCRD(kit.RemoveOldest),
			Change:  kit.Lines("- spec.versions[v1alpha1]"),
		}, kit.DropWebhook(), {
			ID: "team",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Apply(ctx, env, step, "team", newVersion, team)
			},
			Kubectl: kit.Then(kit.Kubectl("sleep 1"), kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team")),
			Change:  kit.Lines("  the team applies charlie at v1beta1, displayName and all"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"conflict", "error", "accepted"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := teamApply(e)
				return kit.Choose([]string{"conflict", "error", "accepted"}, x != nil && x.Status == http.StatusConflict, x != nil && x.Status >= 500, x != nil && !x.Refused())
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "removed", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("not in spec.versions", kit.Flags(e, oldVersion))
			}},
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("None")},
			{ID: "applied", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				x := teamApply(e)
				if x == nil {
					return kit.Holds(false, "the team's apply is accepted", "the team applied nothing")
				}
				return kit.Holds(!x.Refused(), "the team's apply is accepted", kit.Answer(*x))
			}},
			{ID: "owner", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := e.After.Object(charlie)
				return kit.Holds(kit.Owns(o, team, newField), team+" owns spec."+newField+" of "+charlie, kit.Owners(o, newField))
			}},
			{ID: "all-there", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(kit.Counts(e.Before.Stored.ByVersion), kit.Counts(e.After.Stored.ByVersion))
			}},
		},
		Wrong: []lesson.Diagnosis{
			kit.More(),
			{ID: "webhook-left", Seen: func(e lesson.Evidence) bool {
				return e.After.CRD != nil && e.After.Version(oldVersion) == nil && e.After.CRD.Strategy == "Webhook"
			}},
			{ID: "nobody-applied", Seen: func(e lesson.Evidence) bool {
				return e.After.CRD != nil && e.After.CRD.Strategy == "None" && teamApply(e) == nil
			}},
		},
		Lasts: func(o *evidence.Observation) bool {
			return o.CRD != nil && o.Version(oldVersion) == nil && o.CRD.Strategy == "None"
		},
	}
}

// teamApply is the team's server-side apply of charlie.
func teamApply(e lesson.Evidence) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool {
		return x.Method == http.MethodPatch && x.ContentType == evidence.ApplyPatch && x.To(kit.ObjectPath(e, newVersion, charlie))
	})
}
