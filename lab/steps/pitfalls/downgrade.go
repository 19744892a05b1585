package pitfalls

import (
	"context"
	"net/http"
	"net/url"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// Downgrade is the track of an operator that is to go back to its old release, whose CRD has the old version alone: the switch
// was the point of no return, and the way back is a migration of its own. It ends at the old version, and the new one is what
// the verdict is about.
func Downgrade() *lesson.Track {
	return pitfall("downgrade", 5, downgradeRefused(), downgradeLoss(), downgradeWayBack())
}

func downgradeRefused() lesson.Step {
	old := oldRelease()
	old.Do = func(ctx context.Context, env *lesson.Env) error { return kit.ApplyCRD(ctx, env, shared, "crd") }
	old.Expect = lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Field: refusedBecause}
	return lesson.Step{
		ID:      "refused",
		Actions: []lesson.Action{created(), widgets(), switched(), old},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer:  oldReleaseAnswer,
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets}
			})},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion, newVersion)},
			{ID: "refused", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "422, because of " + refusedBecause
				x := toOldRelease(e)
				if x == nil {
					return lesson.Holds(false, want, "nobody asked")
				}
				return kit.Holds(x.Status == http.StatusUnprocessableEntity && lesson.HasCause(*x, refusedBecause), want, kit.Answer(*x))
			}},
		},
	}
}

// refusedBecause is where the record names the new version.
const refusedBecause = "status.storedVersions[1]"

func downgradeLoss() lesson.Step {
	return lesson.Step{
		ID: "loss",
		Actions: []lesson.Action{makeFoxtrot(), {
			ID:      "gold",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Patch(ctx, env, newVersion, alpha, gold) },
			Kubectl: kit.Kubectl(`kubectl patch NEW alpha --type=merge -p '` + gold + `'`),
			Change:  kit.Lines("+ alpha's spec.tier  gold"),
		}, flip(shared, "both"), {
			ID: "ask",
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodPatch, Path: env.Path(newVersion, alpha), Query: url.Values{"dryRun": {"All"}},
					ContentType: evidence.MergePatch, Body: []byte("{}")})
				return err
			},
			Kubectl: kit.Kubectl("kubectl patch NEW alpha --type=merge -p '{}' --dry-run=server -o yaml"),
			Change:  kit.Lines("  alpha: a merge patch {} at v1beta1, as a dry run"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"gold", "standard", "nothing"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Find(e.IsDryRun())
				tier, there := kit.ResponseField(x, "spec", "tier")
				return kit.Choose([]string{"gold", "standard", "nothing"}, tier == "gold", there, x != nil && x.Status == http.StatusOK)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets - 1, newVersion: 2} // alpha and foxtrot
			})},
			{ID: "gold", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("gold", e.Value(alpha, newVersion, "spec", "tier"))
			}},
			{ID: "storage", Kind: lesson.Done, Eval: storageIs(oldVersion)},
			{ID: "lost", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "the answer has no spec.tier"
				x := e.Find(e.IsDryRun())
				if x == nil {
					return lesson.Holds(false, want, "nobody asked")
				}
				tier, there := kit.ResponseField(x, "spec", "tier")
				return kit.Holds(x.Status == http.StatusOK && !there, want, kit.Answer(*x)+", "+kit.OrNothing("tier: ", tier, there))
			}},
		},
	}
}

// gold is a value of a field that the old version does not have.
const gold = `{"spec":{"tier":"gold"}}`

func downgradeWayBack() lesson.Step {
	return lesson.Step{
		ID: "way-back",
		Actions: []lesson.Action{{
			ID: "rewrite",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, oldVersion)
				return err
			},
			Kubectl: kit.RewriteCommands("OLD"),
			Change:  kit.Lines("~ every widget still stored at v1beta1: a merge patch {} at v1alpha1"),
		}, {
			ID: "relabel",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Rewrite, err = kit.Rewriter(env).Relabel(ctx, []string{newVersion}, oldVersion)
				return err
			},
			Kubectl: kit.RelabelBackCommands,
			Change:  kit.Lines("~ metadata.managedFields[*].apiVersion  v1alpha1"),
		}, {
			ID: "trim",
			Do: func(ctx context.Context, env *lesson.Env) error {
				guard, err := kit.Guard(ctx, env)
				if err != nil {
					return err
				}
				return rewrite.Trim(ctx, env.Client, env.Resource, []string{oldVersion}, guard)
			},
			Kubectl: kit.TrimTo("OLDVERSION"),
			Change:  kit.Lines("- status.storedVersions  v1beta1"),
		}, oldRelease()},
		Judge: func(ctx context.Context, env *lesson.Env) error { return kit.JudgeDrop(ctx, env, newVersion) },
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer:  oldReleaseAnswer,
		},
		Checks: append([]lesson.Check{
			{ID: "lost", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("nothing", e.Bytes(alpha, "spec", "tier"))
			}},
		}, endsAt(oldVersion, newVersion)...),
	}
}

// oldRelease applies the CRD as the old release has it, with the old version alone.
func oldRelease() lesson.Action {
	return lesson.Action{
		ID: "old-release",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Replacing(ctx, env, oldVersion, func() error { return kit.ApplyCRD(ctx, env, shared, "crd") })
		},
		Kubectl: kit.FromManifest("kubectl apply", shared, "crd"),
		Change:  kit.Lines("- spec.versions[v1beta1]", "  the CRD of the old release"),
	}
}

// toOldRelease is the request that asked for that CRD: the last change of it in a step; nil where there was none.
func toOldRelease(e lesson.Evidence) (last *evidence.Exchange) {
	e.Find(func(x evidence.Exchange) bool {
		if kit.ChangesCRD(e, x) {
			last = &x
		}
		return false
	})
	return last
}

// oldReleaseAnswer answers the question whether it was accepted.
func oldReleaseAnswer(e lesson.Evidence) (string, error) {
	x := toOldRelease(e)
	return kit.Choose([]string{"refused", "accepted"}, x != nil && x.Refused(), x != nil)
}
