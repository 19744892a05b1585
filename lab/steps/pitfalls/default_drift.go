package pitfalls

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// DefaultDrift is the track of a new default that some objects have in their bytes, some are shown, and some know nothing of: a
// controller that reads the field treats them differently, by their past.
func DefaultDrift() *lesson.Track {
	track := pitfall("default-drift", 8, driftTwoPlans(), driftRewrite(), driftChangedDefault(), driftWayBack())
	track.Named = append(track.Named, foxtrot)
	return track
}

func driftTwoPlans() lesson.Step {
	return lesson.Step{
		ID:      "two-plans",
		Actions: []lesson.Action{created(), widgets(), bothServed(), plan("plan"), switched(), makeFoxtrot(), plan("plan-again")},
		Predict: &lesson.Prediction{
			Options: []string{"default", "by-date", "unmetered"},
			Answer: func(e lesson.Evidence) (string, error) {
				a, f := planOf(e.After, alpha), planOf(e.After, foxtrot)
				return kit.Choose([]string{"by-date", "unmetered", "default"}, a != f, a == unmetered, a != nothing)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets, newVersion: 1}
			})},
			{ID: "no-tier", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(nothing, e.Value(alpha, newVersion, "spec", "tier"))
			}},
			{ID: "old-plan", Kind: lesson.Done, Eval: havePlan(unmetered, alpha, bravo, charlie, delta, echo)},
			{ID: "new-plan", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(e.Value(foxtrot, newVersion, "spec", "tier"), planOf(e.After, foxtrot))
			}},
		},
	}
}

func driftRewrite() lesson.Step {
	return lesson.Step{
		ID: "rewrite",
		Actions: []lesson.Action{{
			ID: "rewrite",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return planning(ctx, env, func(ctx context.Context) error {
					for _, w := range []string{alpha, bravo, charlie} {
						if err := kit.Patch(ctx, env, newVersion, w, "{}"); err != nil {
							return err
						}
					}
					return nil
				})
			},
			Kubectl: kit.Kubectl("for w in alpha bravo charlie; do kubectl patch NEW $w --type=merge -p '{}'; done", planCommand),
			Change:  kit.Lines("~ alpha, bravo, charlie: a merge patch {} at v1beta1", "  the controller watches"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"nothing", "plan"},
			Answer: func(e lesson.Evidence) (string, error) {
				was, is := planOf(e.Before, alpha), planOf(e.After, alpha)
				return kit.Choose([]string{"plan", "nothing"}, was != is, is != nothing)
			},
		},
		Checks: []lesson.Check{
			{ID: "bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(newVersion+", "+e.Value(foxtrot, newVersion, "spec", "tier"), e.StoredVersion(alpha)+", "+e.Bytes(alpha, "spec", "tier"))
			}},
			{ID: "new-plan", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return havePlan(planOf(e.After, foxtrot), alpha, bravo, charlie)(e)
			}},
			{ID: "old-plan", Kind: lesson.Invariant, Eval: havePlan(unmetered, delta, echo)},
		},
	}
}

func driftChangedDefault() lesson.Step {
	const step = "changed-default"
	return lesson.Step{
		ID:   step,
		Show: echo,
		Actions: []lesson.Action{{
			ID: "touch",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.Patch(ctx, env, oldVersion, echo, "{}"); err != nil {
					return err
				}
				return kit.Get(ctx, env, newVersion, echo)
			},
			Kubectl: kit.Kubectl("kubectl patch OLD echo --type=merge -p '{}'", "kubectl get NEW echo -o yaml"),
			Change:  kit.Lines("~ echo: a merge patch {}, by an old client, at v1alpha1"),
		}, {
			ID: "default",
			Do: func(ctx context.Context, env *lesson.Env) error {
				err := kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, step, "default") })
				if err != nil {
					return err
				}
				return kit.Get(ctx, env, newVersion, echo)
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, "default"), kit.Kubectl("sleep 2; kubectl get NEW echo -o yaml")),
			Change:  kit.Lines("~ spec.versions[v1beta1]  the default of spec.tier is basic"),
		}, plan("plan")},
		Predict: &lesson.Prediction{
			Options: []string{"all", "echo", "nobody"},
			Answer: func(e lesson.Evidence) (string, error) {
				changed := func(w string) bool {
					return e.Value(w, newVersion, "spec", "tier") == e.Value(echo, newVersion, "spec", "tier")
				}
				return kit.Choose([]string{"all", "echo", "nobody"}, changed(alpha) && changed(delta), drifted(e) != nil && !changed(alpha) && !changed(delta), !changed(alpha))
			},
		},
		Checks: []lesson.Check{
			{ID: "drifted", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return kit.Holds(drifted(e) != nil, "echo had another tier, at one resourceVersion", "nobody saw it")
			}},
			{ID: "echo", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(e.Value(echo, newVersion, "spec", "tier"), planOf(e.After, echo))
			}},
			{ID: "alpha", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(planOf(e.Before, alpha), planOf(e.After, alpha))
			}},
			{ID: "delta", Kind: lesson.Done, Eval: havePlan(unmetered, delta)},
			{ID: "three", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				plans := []string{planOf(e.After, alpha), planOf(e.After, delta), planOf(e.After, echo)}
				slices.Sort(plans)
				return kit.Holds(len(slices.Compact(slices.Clone(plans))) == len(plans), "each has another plan", fmt.Sprint(plans))
			}},
		},
	}
}

func driftWayBack() lesson.Step {
	return lesson.Step{
		ID:   "way-back",
		Show: echo,
		Actions: []lesson.Action{{
			ID: "default",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, shared, "switch") })
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", shared, "switch"), kit.Kubectl("sleep 2")),
			Change:  kit.Lines("~ spec.versions[v1beta1]  the default of spec.tier is standard again"),
		}, {
			ID: "mend",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Patch(ctx, env, newVersion, echo, standardPatch)
			},
			Kubectl: kit.Kubectl("kubectl patch NEW echo --type=merge -p '" + standardPatch + "'"),
			Change:  kit.Lines("~ echo  spec.tier  standard: somebody decides it"),
		}, rewriteAll(), plan("plan"), trim(), relabel(), remove()},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"same", "stays"},
			Answer: func(e lesson.Evidence) (string, error) {
				was, is := planOf(e.Before, delta), planOf(e.After, delta)
				return kit.Choose([]string{"same", "stays"}, was != is && is == planOf(e.After, alpha), was == is)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "written", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "the bytes of every widget have the same tier"
				for _, o := range e.After.Objects {
					if is := e.Bytes(o.Name, "spec", "tier"); is == nothing || is != e.Bytes(alpha, "spec", "tier") {
						return lesson.Holds(false, want, o.Name+": "+is)
					}
				}
				return kit.Holds(len(e.After.Objects) > 0, want, "no objects")
			}},
			{ID: "one-plan", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return havePlan(e.Value(alpha, newVersion, "spec", "tier"), alpha, bravo, charlie, delta, echo, foxtrot)(e)
			}},
		}, inPlace()...),
	}
}

// standardPatch writes a tier, so that no default decides.
const standardPatch = `{"spec":{"tier":"standard"}}`

// ── evidence ──

// nothing is what lesson.Evidence says of a field that is not there.
const nothing = "nothing"

// planOf is the plan that the controller has given a widget.
func planOf(o *evidence.Observation, object string) string {
	return lesson.Evidence{After: o}.Value(object, newVersion, "metadata", "labels", "plan")
}

// havePlan checks the plan of several widgets.
func havePlan(want string, objects ...string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		for _, o := range objects {
			if got := planOf(e.After, o); got != want {
				return lesson.Holds(false, want, o+": "+got)
			}
		}
		return lesson.Holds(true, want, want)
	}
}

// drifted is the read of echo that showed another tier than an earlier one, though nobody had written it in between; nil where
// nobody has seen it.
func drifted(e lesson.Evidence) *evidence.Exchange {
	asked := e.About(http.MethodGet, newVersion, echo)
	tiers := map[any]any{} // by resourceVersion, as it was read first
	return e.Find(func(x evidence.Exchange) bool {
		tier, there := kit.ResponseField(&x, "spec", "tier")
		if !asked(x) || !there {
			return false
		}
		at, _ := kit.ResponseField(&x, "metadata", "resourceVersion")
		first, seen := tiers[at]
		if !seen {
			tiers[at] = tier
		}
		return seen && first != tier
	})
}
