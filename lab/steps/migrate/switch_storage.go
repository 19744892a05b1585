package migrate

import (
	"context"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func switchStorage() lesson.Step {
	const step = "switch-storage"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/storage-switch-race", "pitfalls/default-drift", "pitfalls/downgrade", "pitfalls/early-trim"},
		Show:   foxtrot,
		Actions: []lesson.Action{kit.SwitchStorage(step, "crd"), {
			ID: "foxtrot",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "foxtrot", newVersion)
			},
			Kubectl: kit.Then(kit.Kubectl("sleep 1"), kit.FromManifest("kubectl apply", step, "foxtrot")),
			Change:  kit.Lines("+ foxtrot  at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"standard", "nothing", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				v := e.After.Object(alpha).View(newVersion)
				_, tier := v.Field("spec", "tier")
				return kit.Choose([]string{"standard", "nothing", "error"}, v != nil && tier, v != nil && v.Status == 200 && !tier, v != nil && v.Status >= 400)
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion, newVersion)},
			{ID: "new-bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := e.After.Object(foxtrot)
				if o == nil {
					return lesson.Holds(false, foxtrot+" stored at "+newVersion+" with a tier", "there is no "+foxtrot)
				}
				tier, there := o.Stored.Field("spec", "tier")
				return lesson.Holds(o.StoredVersion() == newVersion && there, foxtrot+" stored at "+newVersion+" with a tier",
					foxtrot+" stored at "+o.StoredVersion()+", "+kit.OrNothing("tier: ", tier, there))
			}},
			{ID: "old-bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
			{ID: "counts", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				want := map[string]int{newVersion: 1}
				for v, n := range e.Before.Stored.ByVersion {
					want[v] += n
				}
				return want
			})},
			{ID: "no-default", Kind: lesson.Done, Eval: noDefault},
		},
		Wrong: []lesson.Diagnosis{
			kit.DoneBefore(func(o *evidence.Observation) bool {
				return o.Stored.ByVersion[newVersion] > 0 || o.Object(foxtrot) != nil
			}),
			kit.Written(),
			{ID: "foxtrot-old", Seen: func(e lesson.Evidence) bool { return e.After.Object(foxtrot).StoredVersion() == oldVersion }},
			{ID: "no-foxtrot", Seen: func(e lesson.Evidence) bool {
				return e.After.StorageVersion() == newVersion && e.After.Object(foxtrot) == nil
			}},
			{ID: "foxtrot-bare", Seen: func(e lesson.Evidence) bool {
				o := e.After.Object(foxtrot)
				return o.StoredVersion() == newVersion && e.Bytes(foxtrot, "spec", "tier") == "nothing"
			}},
			{ID: "too-many", Seen: func(e lesson.Evidence) bool { return e.Total() > e.Before.Stored.Total+1 }},
		},
		Lasts: func(o *evidence.Observation) bool { return o.StorageVersion() == newVersion },
	}
}
