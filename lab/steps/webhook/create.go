package webhook

import (
	"context"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func create() lesson.Step {
	const step = "create"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{kit.CreateCRD(step, "crd"), {
			ID: "widgets",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "widgets", oldVersion)
			},
			Kubectl: kit.FromManifest("kubectl apply", step, "widgets"),
			Change:  kit.Lines("+ alpha, bravo, delta, echo  at v1alpha1"),
		}, {
			ID: "team",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Apply(ctx, env, step, "team", oldVersion, team)
			},
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team"),
			Change:  kit.Lines("+ charlie  applied by the manager team"),
		}, {
			ID:      "none",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.AskCRD(ctx, env, step, "none") },
			Kubectl: kit.FromManifest("kubectl apply --dry-run=server", step, "none"),
			Change:  kit.Lines("  v1beta1 with another name for the field, strategy None, as a dry run"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"refused", "warned", "accepted"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := kit.AskedCRD(e)
				return kit.Choose([]string{"refused", "warned", "accepted"}, x != nil && x.Refused(), x != nil && len(x.Warnings) > 0, x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.Begun(oldVersion, named[:lesson.MinWidgets]...)},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion)},
			{ID: "team", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := e.After.Object(charlie)
				return kit.Holds(o != nil && len(o.Managers) > 0 && o.Managers[0].Manager == team, "charlie belongs to "+team,
					kit.OrNobody(kit.Managers(o, kit.AsItIs)))
			}},
			{ID: "none", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "accepted, without a warning"
				x := kit.AskedCRD(e)
				if x == nil {
					return kit.Holds(false, want, "nobody asked")
				}
				return kit.Holds(!x.Refused() && len(x.Warnings) == 0, want, kit.Answer(*x))
			}},
			{ID: "nothing-came-of-it", Kind: lesson.Invariant, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("not in spec.versions", kit.Flags(e, newVersion))
			}},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "no-crd", Seen: func(e lesson.Evidence) bool { return e.After.CRD == nil }},
			{ID: "too-early", Seen: func(e lesson.Evidence) bool { return e.After.Version(newVersion) != nil }},
			kit.Misnamed(named[:lesson.MinWidgets]...),
		},
	}
}
