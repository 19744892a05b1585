package webhook

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func verify() lesson.Step {
	return lesson.Step{
		ID:     "verify",
		WhatIf: []string{"pitfalls/restored-bytes"},
		Actions: []lesson.Action{{
			ID: "down",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.SwitchFault(ctx, env, "down"); err != nil {
					return err
				}
				if err := kit.List(ctx, env, newVersion, false); err != nil {
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
			ID:      "verdict",
			Do:      kit.Judge,
			Kubectl: kit.Kubectl("kubectl get crd CRD -o jsonpath='{.spec.conversion}{\"\\n\"}{.status.storedVersions}{\"\\n\"}'"),
			Change:  kit.Lines("  bytes, record, managers and answers are read"),
		}},
		Predict: kit.WhichVerdict(),
		Checks: []lesson.Check{
			{ID: "complete", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.Complete},
			{ID: "findings", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.EveryFinding},
			{ID: "answers", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				if o := listed("limit")(e); o.Result != lesson.Passed {
					return o
				}
				for _, o := range named {
					if o := kit.Answered(http.MethodGet, newVersion, o, http.StatusOK)(e); o.Result != lesson.Passed {
						return o
					}
				}
				return kit.Holds(true, "all are read", "all are read")
			}},
			{ID: "strategy", Kind: lesson.Invariant, Eval: kit.Strategy("None")},
		},
		Wrong: []lesson.Diagnosis{kit.NotComplete()},
	}
}
