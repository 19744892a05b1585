package webhook

import (
	"context"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/verdict"
)

func verify() lesson.Step {
	return lesson.Step{
		ID: "verify",
		Actions: []lesson.Action{{
			ID: "down",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := switchFault(ctx, env, "down"); err != nil {
					return err
				}
				if err := list(ctx, env, newVersion, false); err != nil {
					return err
				}
				for _, o := range named {
					if err := kit.Get(ctx, env, newVersion, o); err != nil {
						return err
					}
				}
				return nil
			},
			Change: kit.Lines("  the webhook goes down, for good; LIST and GET at v1beta1"),
		}, {
			ID: "verdict",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Verdict, err = verdict.Of(ctx, verdict.Query{Client: env.Client, Storage: env.Storage, Resource: env.Resource, Drop: []string{oldVersion}})
				return err
			},
			Kubectl: kit.Kubectl("kubectl get crd CRD -o jsonpath='{.spec.conversion}{\"\\n\"}{.status.storedVersions}{\"\\n\"}'"),
			Change:  kit.Lines("  bytes, record, managers and answers are read"),
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
					return kit.Holds(false, string(verdict.Complete), "nobody looked")
				}
				return lesson.Expected(verdict.Complete, e.Verdict.Verdict)
			}},
			{ID: "findings", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				if e.Verdict == nil {
					return kit.Holds(false, "no finding fails", "nobody looked")
				}
				var other []string
				for _, f := range e.Verdict.Findings {
					if f.Result != verdict.Pass {
						other = append(other, f.ID+": "+string(f.Result))
					}
				}
				return kit.Holds(len(other) == 0, "every finding passes", strings.Join(append(other, ""), " "))
			}},
			{ID: "answers", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				if o := listed("limit")(e); o.Result != lesson.Passed {
					return o
				}
				for _, o := range named {
					if o := answered(http.MethodGet, newVersion, o, http.StatusOK)(e); o.Result != lesson.Passed {
						return o
					}
				}
				return kit.Holds(true, "all are read", "all are read")
			}},
			{ID: "strategy", Kind: lesson.Invariant, Eval: strategy("None")},
		},
	}
}
