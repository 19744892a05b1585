package migrate

import (
	"context"
	"strings"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/verdict"
)

func verify() lesson.Step {
	return lesson.Step{
		ID: "verify",
		Actions: []lesson.Action{{
			ID: "verdict",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Verdict, err = verdict.Of(ctx, verdict.Query{Client: env.Client, Storage: env.Storage, Resource: env.Resource, Drop: []string{oldVersion}})
				return err
			},
			Kubectl: kit.Kubectl("kubectl get crd CRD -o jsonpath='{.status.storedVersions}{\"\\n\"}'", "kubectl get NEW --show-managed-fields -o yaml | grep -c "+oldVersion+" || true"),
			Change:  kit.Lines("  nothing: bytes, record, managers and answers are read"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{string(verdict.Complete), string(verdict.Incomplete), string(verdict.Unknown)},
			Answer: func(e lesson.Evidence) (string, error) {
				if e.Verdict == nil {
					return "", lesson.ErrNoAnswer
				}
				return string(e.Verdict.Verdict), nil
			},
		},
		Checks: []lesson.Check{
			{ID: "complete", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				if e.Verdict == nil {
					return lesson.Holds(false, string(verdict.Complete), "nobody looked")
				}
				return lesson.Expected(verdict.Complete, e.Verdict.Verdict)
			}},
			{ID: "findings", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				if e.Verdict == nil {
					return lesson.Holds(false, "every finding passes", "nobody looked")
				}
				var other []string
				for _, f := range e.Verdict.Findings {
					if f.Result != verdict.Pass {
						other = append(other, f.ID+": "+string(f.Result))
					}
				}
				if len(other) > 0 {
					return lesson.Holds(false, "every finding passes", strings.Join(other, ", "))
				}
				return lesson.Holds(true, "every finding passes", "every finding passes")
			}},
			{ID: "unchanged", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}
