package migrate

import (
	"context"
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func rewriteObjects() lesson.Step {
	const step = "rewrite"
	return lesson.Step{
		ID:       step,
		WhatIf:   []string{"pitfalls/flip-back", "pitfalls/large-rewrite", "pitfalls/ratcheting", "pitfalls/svm-record"},
		Rewrites: true,
		Actions: []lesson.Action{{
			ID: "rewrite",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				if env.RewriteWith == lesson.WithMigration {
					return kit.Migrate(ctx, env, step, "svm", newVersion)
				}
				env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, newVersion)
				return err
			},
			Kubectl: kit.ByRewriter(
				kit.RewriteCommands("NEW"),
				kit.Then(kit.FromManifest("kubectl apply", step, "svm"), kit.Kubectl("kubectl wait --for=condition=Succeeded --timeout=5m storageversionmigration/CRD",
					"kubectl wait --for=condition=StorageMigrating=False --timeout=1m crd/CRD"))),
			Change: kit.ByRewriter(
				kit.Lines("~ every widget still stored at v1alpha1: a merge patch {} at v1beta1", "  nothing is asked for; the server writes all the same"),
				kit.Lines("+ a StorageVersionMigration of the widgets", "  its controller writes them, one by one")),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"shrinks", "stays", "empties"},
			Answer: func(e lesson.Evidence) (string, error) {
				was, is := e.Before.StoredVersions(), e.After.StoredVersions()
				return kit.Choose([]string{"shrinks", "stays", "empties"}, len(is) > 0 && len(is) < len(was), slices.Equal(was, is), len(is) == 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int { return map[string]int{newVersion: e.Before.Stored.Total} })},
			{ID: "default", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: defaulted},
			{ID: "same-objects", Kind: lesson.Invariant, Eval: sameObjects},
			{ID: "managers", Kind: lesson.Invariant, Eval: kit.SameManagers(kit.AsItIs)},
			{ID: "record", Kind: lesson.Invariant, Eval: recordAfterRewrite},
		},
		Wrong: []lesson.Diagnosis{
			kit.MadeAnew(),
			kit.NewManagers(),
			kit.More(),
			{ID: "some-left", Seen: func(e lesson.Evidence) bool {
				return e.After.StorageVersion() == newVersion && e.After.Stored.ByVersion[oldVersion] > 0
			}},
			{ID: "changed", Seen: func(e lesson.Evidence) bool { return sameObjects(e).Result == lesson.Failed }},
			{ID: "no-default", Seen: func(e lesson.Evidence) bool {
				return e.After.Stored.Access && e.StoredAt(oldVersion) == 0 && defaulted(e).Result == lesson.Failed
			}},
		},
		Lasts: func(o *evidence.Observation) bool { return o.Stored.ByVersion[oldVersion] == 0 },
	}
}

// recordAfterRewrite checks storedVersions: patches leave it as it was, the controller of a StorageVersionMigration trims it.
func recordAfterRewrite(e lesson.Evidence) lesson.Outcome {
	if e.Migrated() {
		return kit.Record(newVersion)(e)
	}
	return kit.Record(oldVersion, newVersion)(e)
}

// sameObjects checks that every object is the one that it was: the same uid, and the same spec but for the new field.
var sameObjects = kit.EveryPair("the same uid and spec, but for tier", func(p kit.Pair) string {
	if p.Is.UID != p.Was.UID {
		return "made anew"
	}
	a, b := p.Was.View(newVersion), p.Is.View(newVersion)
	if a == nil || b == nil || !kit.SameBut(a.Object, b.Object, "metadata", "spec.tier") {
		return "changed in more"
	}
	return ""
})

// defaulted checks that the new version's default has come into alpha's bytes. A controller that migrates may write through
// either version, as it has come to know them; through the old one the default is only shown from then on.
func defaulted(e lesson.Evidence) lesson.Outcome {
	if e.Migrated() {
		tier, shown := e.After.Object(alpha).View(newVersion).Field("spec", "tier")
		return lesson.Holds(shown, "spec.tier shown at "+newVersion, kit.OrNothing("spec.tier: ", tier, shown))
	}
	const want = "spec.tier in alpha's bytes"
	o := e.After.Object(alpha)
	if o == nil {
		return lesson.Holds(false, want, "there is no alpha")
	}
	tier, there := o.Stored.Field("spec", "tier")
	return lesson.Holds(there, want, kit.OrNothing("spec.tier: ", tier, there))
}
