package webhook

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func stopServing() lesson.Step {
	const step = "stop-serving"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/old-client-write"},
		Show:   delta,
		Actions: []lesson.Action{kit.StopServing(step, "crd", alpha), {
			ID:      "ask-v1alpha1",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, oldVersion, delta) },
			Kubectl: kit.Kubectl("sleep 1; kubectl get --raw " + kit.CollectionURL("OLDVERSION") + "/delta"),
			Change:  kit.Lines("  GET delta at v1alpha1, and at v1beta1"),
			Expect:  lesson.Expect{Refused: true},
		}, {
			ID:      "ask-v1beta1",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, newVersion, delta) },
			Kubectl: kit.Kubectl("kubectl get NEW delta"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"not-found", "converted", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				status := e.Status(delta, newVersion)
				return kit.Choose([]string{"not-found", "converted", "error"}, status == http.StatusNotFound, status == http.StatusOK, status >= 500)
			},
		},
		Checks: []lesson.Check{
			{ID: "flag", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("not served, not storage", kit.Flags(e, oldVersion))
			}},
			{ID: "asked-old", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, oldVersion, delta, http.StatusNotFound)},
			{ID: "asked-new", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, delta, http.StatusOK)},
			{ID: "still-old", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(oldVersion, e.After.Object(delta).StoredVersion())
			}},
			{ID: "record", Kind: lesson.Invariant, Eval: kit.Record(oldVersion, newVersion)},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "nobody-asked", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && !v.Served && e.Sent(http.MethodGet, oldVersion, delta) == nil
			}},
			{ID: "moved", Seen: func(e lesson.Evidence) bool { return e.StoredVersion(delta) == newVersion }},
		},
		Lasts: func(o *evidence.Observation) bool { v := o.Version(oldVersion); return v == nil || !v.Served },
	}
}
