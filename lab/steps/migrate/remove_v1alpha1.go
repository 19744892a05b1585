package migrate

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func removeOld() lesson.Step {
	const step = "remove-v1alpha1"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/ssa-after-removal", "pitfalls/downgrade"},
		Show:   charlie,
		Actions: []lesson.Action{{
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, step, "crd") })
			},
			Kubectl: kit.PatchCRD(kit.RemoveOldest),
			Change:  kit.Lines("- spec.versions[v1alpha1]"),
		}, {
			ID: "team",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Apply(ctx, env, step, "team", newVersion, team)
			},
			Kubectl: kit.Then(kit.Kubectl("sleep 1"), kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team")),
			Change:  kit.Lines("  the team applies charlie at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"deleted", "rewritten", "untouched"},
			Answer: func(e lesson.Evidence) (string, error) {
				was, is := e.Before.Object(alpha), e.After.Object(alpha)
				return kit.Choose([]string{"deleted", "rewritten", "untouched"}, is == nil,
					was != nil && is.ResourceVersion != was.ResourceVersion, was != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "removed", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				var names []string
				if e.After.CRD != nil {
					for _, v := range e.After.CRD.Versions {
						names = append(names, v.Name)
					}
				}
				return lesson.Expected([]string{newVersion}, names)
			}},
			{ID: "applied", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				xs := teamApplies(e)
				if len(xs) == 0 {
					return lesson.Holds(false, "200", "the team applied nothing")
				}
				return lesson.Expected("200", kit.Answer(xs[len(xs)-1]))
			}},
			{ID: "readable", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				for _, o := range e.After.Objects {
					if s := e.Status(o.Name, newVersion); s != http.StatusOK {
						return lesson.Expected("200 for every object", o.Name+": "+http.StatusText(s))
					}
				}
				return lesson.Holds(len(e.After.Objects) > 0, "200 for every object", "200 for every object")
			}},
			{ID: "all-there", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(kit.Counts(e.Before.Stored.ByVersion), kit.Counts(e.After.Stored.ByVersion))
			}},
		},
		Wrong: []lesson.Diagnosis{
			kit.More(),
			{ID: "nobody-applied", Seen: func(e lesson.Evidence) bool {
				return e.After.CRD != nil && e.After.Version(oldVersion) == nil && len(teamApplies(e)) == 0
			}},
		},
		Lasts: func(o *evidence.Observation) bool { return o.CRD != nil && o.Version(oldVersion) == nil },
	}
}
