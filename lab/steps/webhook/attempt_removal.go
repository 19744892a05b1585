package webhook

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func attemptRemoval() lesson.Step {
	const step = "attempt-removal"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/early-trim"},
		Actions: []lesson.Action{{
			ID:      "crd",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.ApplyCRD(ctx, env, step, "crd") },
			Kubectl: kit.PatchCRD(kit.RemoveOldest),
			Change:  kit.Lines("- spec.versions[v1alpha1]"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Field: "status.storedVersions[0]"},
		}},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Find(func(x evidence.Exchange) bool { return kit.ChangesCRD(e, x) })
				return kit.Choose([]string{"accepted", "refused"}, x != nil && !x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "refused", Kind: lesson.Done, Eval: kit.RemovalRefused},
			{ID: "nothing-stored", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(0, e.StoredAt(oldVersion))
			}},
			{ID: "still-there", Kind: lesson.Invariant, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("not served, not storage", kit.Flags(e, oldVersion))
			}},
		},
	}
}
