package migrate

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
		ID: step,
		Actions: []lesson.Action{{
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				recorded, err := kit.Records(ctx, env, oldVersion)
				switch {
				case err != nil:
					return err
				case !recorded: // somebody trimmed it, such as a migration's controller: the server would take the removal
					return kit.AskCRD(ctx, env, step, "crd")
				}
				return kit.ApplyCRD(ctx, env, step, "crd")
			},
			Kubectl: kit.ByRewriter(kit.PatchCRD(kit.RemoveOldest), kit.AskRemoval),
			Change:  kit.ByRewriter(kit.Lines("- spec.versions[v1alpha1]"), kit.Lines("- spec.versions[v1alpha1]  as a dry run")),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Field: "status.storedVersions[0]", OrDryRun: true},
		}},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused", "warned"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Find(func(x evidence.Exchange) bool { return kit.ChangesCRD(e, x) })
				return kit.Choose([]string{"accepted", "refused", "warned"}, x != nil && !x.Refused() && len(x.Warnings) == 0, x != nil && x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "answer", Kind: lesson.Done, Eval: answeredByRecord},
			{ID: "nothing-stored", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(0, e.StoredAt(oldVersion))
			}},
			{ID: "still-there", Kind: lesson.Invariant, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("served, not storage", kit.Flags(e, oldVersion))
			}},
		},
	}
}

// answeredByRecord checks that the server answers by its record: it refuses while that names the version, and else would accept.
func answeredByRecord(e lesson.Evidence) lesson.Outcome {
	if !e.Before.Lists(oldVersion) {
		return kit.WouldAccept(e)
	}
	return kit.RemovalRefused(e)
}
