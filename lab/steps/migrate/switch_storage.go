package migrate

import (
	"context"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
)

func switchStorage() lesson.Step {
	const step = "switch-storage"
	return lesson.Step{
		ID:   step,
		Show: foxtrot,
		Actions: []lesson.Action{{
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := applyCRD(ctx, env, step, "crd"); err != nil {
					return err
				}
				// the update is answered before it is in effect: a write sent at once may still be stored at the old version
				_, err := rewriter(env).WaitInEffect(ctx, newVersion, nil)
				return err
			},
			Kubectl: patchCRD(`{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"test","path":"/spec/versions/1/name","value":"` + newVersion + `"},{"op":"replace","path":"/spec/versions/1/storage","value":true}`),
			Change:  lines("- spec.versions[v1alpha1].storage  true", "+ spec.versions[v1beta1].storage   true"),
		}, {
			ID:      "foxtrot",
			Do:      func(ctx context.Context, env *lesson.Env) error { return create(ctx, env, step, "foxtrot", newVersion) },
			Kubectl: then(kubectl("sleep 1"), fromManifest("kubectl apply", step, "foxtrot")),
			Change:  lines("+ foxtrot  at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"standard", "nothing", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				v := e.After.Object(alpha).View(newVersion)
				_, tier := v.Field("spec", "tier")
				return choose([]string{"standard", "nothing", "error"}, v != nil && tier, v != nil && v.Status == 200 && !tier, v != nil && v.Status >= 400)
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: record(oldVersion, newVersion)},
			{ID: "new-bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := e.After.Object(foxtrot)
				if o == nil {
					return lesson.Holds(false, foxtrot+" stored at "+newVersion+" with a tier", "there is no "+foxtrot)
				}
				tier, there := o.Stored.Field("spec", "tier")
				return lesson.Holds(o.StoredVersion() == newVersion && there, foxtrot+" stored at "+newVersion+" with a tier",
					foxtrot+" stored at "+o.StoredVersion()+", "+orNothing("tier: ", tier, there))
			}},
			{ID: "old-bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: bytesUnchanged},
			{ID: "counts", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: storedAt(func(e lesson.Evidence) map[string]int {
				want := map[string]int{newVersion: 1}
				for v, n := range e.Before.Stored.ByVersion {
					want[v] += n
				}
				return want
			})},
			{ID: "no-default", Kind: lesson.Done, Eval: noDefault},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "foxtrot-old", Seen: func(e lesson.Evidence) bool { return e.After.Object(foxtrot).StoredVersion() == oldVersion }},
			{ID: "no-foxtrot", Seen: func(e lesson.Evidence) bool {
				return e.After.StorageVersion() == newVersion && e.After.Object(foxtrot) == nil
			}},
		},
		Lasts: func(o *evidence.Observation) bool { return o.StorageVersion() == newVersion },
	}
}

func rewriter(env *lesson.Env) *rewrite.Rewriter {
	return &rewrite.Rewriter{Client: env.Client, Storage: env.Storage, Resource: env.Resource, Namespace: env.Namespace,
		Progress: env.Progress, Gate: env.Gate}
}
