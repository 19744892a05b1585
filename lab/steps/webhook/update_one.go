package webhook

import (
	"context"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func updateOne() lesson.Step {
	return lesson.Step{
		ID:     "update-one",
		WhatIf: []string{"pitfalls/lossy-round-trip", "pitfalls/old-client-write"},
		Actions: []lesson.Action{{
			ID: "patch", Count: true,
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Patch(ctx, env, newVersion, alpha, `{"spec":{"replicas":8}}`)
			},
			Kubectl: kit.Kubectl(`kubectl patch NEW alpha --type=merge -p '{"spec":{"replicas":8}}'`),
			Change:  kit.Lines("~ alpha  spec.replicas, through v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"none", "one", "all"},
			Answer: func(e lesson.Evidence) (string, error) {
				moved := e.StoredAt(newVersion) - e.Before.Stored.ByVersion[newVersion]
				return kit.Choose([]string{"none", "one", "all"}, moved == 0, moved == 1, e.StoredAt(oldVersion) == 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "one-moved", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				want := map[string]int{}
				for v, n := range e.Before.Stored.ByVersion {
					want[v] = n
				}
				want[newVersion]++
				if want[oldVersion]--; want[oldVersion] == 0 {
					delete(want, oldVersion)
				}
				return want
			})},
			{ID: "alpha", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "alpha is stored at " + newVersion + " with " + newField
				o := e.After.Object(alpha)
				if o == nil {
					return kit.Holds(false, want, "there is no alpha")
				}
				_, there := o.Stored.Field("spec", newField)
				return kit.Holds(o.StoredVersion() == newVersion && there, want, "stored at "+o.StoredVersion())
			}},
			{ID: "others", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.OnlyWritten(alpha)},
			{ID: "converted", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				asked := len(kit.ConversionsTo(e, newVersion, alpha)) + len(kit.ConversionsTo(e, oldVersion, alpha))
				return kit.Holds(asked > 0, "alpha was converted", "nobody asked the webhook")
			}},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "more", Seen: func(e lesson.Evidence) bool {
				return e.StoredAt(newVersion) > e.Before.Stored.ByVersion[newVersion]+1
			}},
		},
	}
}
