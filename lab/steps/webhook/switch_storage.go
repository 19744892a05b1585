package webhook

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
		WhatIf: []string{"pitfalls/storage-switch-race", "pitfalls/downgrade"},
		Actions: []lesson.Action{kit.SwitchStorage(step, "crd"), {
			ID: "foxtrot",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "foxtrot", newVersion)
			},
			Kubectl: kit.Then(kit.Kubectl("sleep 1"), kit.FromManifest("kubectl apply", step, "foxtrot")),
			Change:  kit.Lines("+ foxtrot  at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"label", "displayName", "both"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := e.After.Object(alpha)
				if o == nil {
					return "", lesson.ErrNoAnswer
				}
				_, old := o.Stored.Field("spec", oldField)
				_, renamed := o.Stored.Field("spec", newField)
				return kit.Choose([]string{"label", "displayName", "both"}, old && !renamed, renamed && !old, old && renamed)
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion, newVersion)},
			{ID: "new-bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = foxtrot + " stored at " + newVersion + " with " + newField
				o := e.After.Object(foxtrot)
				if o == nil {
					return kit.Holds(false, want, "there is no "+foxtrot)
				}
				_, there := o.Stored.Field("spec", newField)
				return kit.Holds(o.StoredVersion() == newVersion && there, want, "stored at "+o.StoredVersion())
			}},
			{ID: "old-bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
			{ID: "same-value", Kind: lesson.Done, Eval: sameValue},
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
		},
		Lasts: func(o *evidence.Observation) bool { return o.StorageVersion() == newVersion },
	}
}
