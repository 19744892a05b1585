package migrate

import (
	"context"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func relabelManagedFields() lesson.Step {
	const step = "relabel-managed-fields"
	applyAsTeam := func(action string) func(context.Context, *lesson.Env) error {
		return func(ctx context.Context, env *lesson.Env) error {
			return kit.Apply(ctx, env, step, action, newVersion, team)
		}
	}
	return lesson.Step{
		ID:           step,
		WhatIf:       []string{"pitfalls/ssa-after-removal"},
		Show:         charlie,
		ShowManagers: true,
		Actions: []lesson.Action{{
			ID:      "team-before",
			Do:      applyAsTeam("team-before"),
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team-before"),
			Change:  kit.Lines("  the team applies charlie at v1beta1, with tier: gold"),
			Expect:  lesson.Expect{Refused: true},
		}, {
			ID: "relabel",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Rewrite, err = kit.Rewriter(env).Relabel(ctx, []string{oldVersion}, newVersion)
				return err
			},
			Kubectl: kit.RelabelCommands,
			Change:  kit.Lines("- metadata.managedFields[*].apiVersion  v1alpha1", "+ metadata.managedFields[*].apiVersion  v1beta1"),
		}, {
			ID:      "team-after",
			Do:      applyAsTeam("team-after"),
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team-after"),
			Change:  kit.Lines("  the team applies the same once more"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "conflict", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				xs := teamApplies(e)
				if len(xs) == 0 {
					return "", lesson.ErrNoAnswer
				}
				first := xs[0]
				return kit.Choose([]string{"accepted", "conflict", "error"}, !first.Refused(), first.Status == http.StatusConflict, first.Status >= 500)
			},
		},
		Checks: []lesson.Check{
			{ID: "refused-before", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "the team's first apply is an error"
				xs := teamApplies(e)
				if len(xs) == 0 {
					return lesson.Holds(false, want, "the team applied nothing")
				}
				return lesson.Holds(xs[0].Status >= 500, want, kit.Answer(xs[0]))
			}},
			{ID: "labels", Kind: lesson.Done, Eval: kit.NoEntryNames(oldVersion)},
			{ID: "applied-after", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				xs := teamApplies(e)
				if len(xs) < 2 {
					return lesson.Holds(false, "the team's second apply is accepted", "the team applied only once")
				}
				last := xs[len(xs)-1]
				return lesson.Holds(last.Status == http.StatusOK, "the team's second apply is accepted", kit.Answer(last))
			}},
			{ID: "owner", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Holds(kit.Owns(e.After.Object(charlie), team, "tier"), team+" owns spec.tier of "+charlie, kit.Owners(e.After.Object(charlie), "tier"))
			}},
			{ID: "managers", Kind: lesson.Invariant, Eval: kit.SameManagers(func(v string) string {
				return strings.Replace(v, "/"+oldVersion, "/"+newVersion, 1)
			})},
		},
		Wrong: []lesson.Diagnosis{
			kit.NewManagers(),
			{ID: "some-left", Seen: func(e lesson.Evidence) bool {
				n := len(kit.ManagersAt(e.After, e.Resource.Group+"/"+oldVersion))
				return n > 0 && n < len(kit.ManagersAt(e.Before, e.Resource.Group+"/"+oldVersion))
			}},
			{ID: "no-before", Seen: func(e lesson.Evidence) bool {
				xs := teamApplies(e)
				relabelled := len(kit.ManagersAt(e.After, e.Resource.Group+"/"+oldVersion)) == 0
				return len(xs) > 0 && !xs[0].Refused() || len(xs) == 0 && relabelled && e.After.CRD != nil
			}},
			{ID: "not-the-team", Seen: func(e lesson.Evidence) bool {
				x := e.LastChangeByHand()
				return x != nil && x.ContentType == evidence.ApplyPatch && x.To(kit.ObjectPath(e, newVersion, charlie)) && !strings.Contains(x.Path, "fieldManager="+team)
			}},
			{ID: "not-again", Seen: func(e lesson.Evidence) bool {
				xs := teamApplies(e)
				return len(kit.ManagersAt(e.After, e.Resource.Group+"/"+oldVersion)) == 0 && len(xs) > 0 && xs[len(xs)-1].Refused()
			}},
			{ID: "no-tier", Seen: func(e lesson.Evidence) bool {
				xs := teamApplies(e)
				return len(xs) > 1 && !xs[len(xs)-1].Refused() && !kit.Owns(e.After.Object(charlie), team, "tier")
			}},
			{ID: "not-relabelled", Seen: func(e lesson.Evidence) bool { return len(teamApplies(e)) > 0 }},
		},
		Lasts: func(o *evidence.Observation) bool {
			return o.CRD != nil && len(kit.ManagersAt(o, strings.TrimPrefix(o.CRD.Name, "widgets.")+"/"+oldVersion)) == 0
		},
	}
}
