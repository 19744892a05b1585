package pitfalls

import (
	"context"
	"fmt"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// OldClientWrite is the track of a client that knows the old version alone, and asks for a label: what only the new version has
// is gone from the object.
func OldClientWrite() *lesson.Track {
	return pitfall("old-client-write", 5, oldClientReads(), oldClientWrites(), oldClientWayBack())
}

func oldClientReads() lesson.Step {
	return lesson.Step{
		ID:      "read",
		Actions: []lesson.Action{created(), widgets(), switched(), makeGold("gold", alpha, bravo), get("read", oldVersion, alpha, lesson.Accepted)},
		Predict: &lesson.Prediction{
			Options: []string{"value", "default", "nothing"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := readAs(e, oldVersion, alpha)
				tier, there := kit.ResponseField(x, "spec", "tier")
				return kit.Choose([]string{"value", "default", "nothing"}, there && tier == e.Value(alpha, newVersion, "spec", "tier"), there, x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "switched", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("served, storage", kit.Flags(e, newVersion))
			}},
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("gold, gold", e.Bytes(alpha, "spec", "tier")+", "+e.Bytes(bravo, "spec", "tier"))
			}},
			{ID: "read", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "alpha is read at " + oldVersion + ", without a tier"
				x := readAs(e, oldVersion, alpha)
				if x == nil {
					return lesson.Holds(false, want, "nobody has read it")
				}
				tier, there := kit.ResponseField(x, "spec", "tier")
				return kit.Holds(!there, want, fmt.Sprint("its tier is ", tier))
			}},
		},
	}
}

func oldClientWrites() lesson.Step {
	return lesson.Step{
		ID:      "label",
		Actions: []lesson.Action{labelAsOldClient("label", "blue")},
		Predict: whatIsLeft(),
		Checks: []lesson.Check{
			{ID: "accepted", Kind: lesson.Done, Eval: acceptedSilently(oldVersion, alpha)},
			{ID: "label", Kind: lesson.Done, Eval: labelled("blue")},
			{ID: "erased", Kind: lesson.Done, Eval: isErased},
			{ID: "bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("nothing", e.Bytes(alpha, "spec", "tier"))
			}},
			{ID: "others", Kind: lesson.Invariant, Eval: kit.OnlyWritten(alpha)},
		},
	}
}

func oldClientWayBack() lesson.Step {
	const step = "way-back"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "declare",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return declare(ctx, env, step, oldVersion, bravo, "tier")
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, "declare"), kit.Kubectl("sleep 1")),
			Change:  kit.Lines("+ spec.versions[v1alpha1]  tier as well"),
		}, makeGold("gold", alpha), labelAsOldClient("label", "green"), rewriteAll(), trim(), relabel(), remove()},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"kept", "erased"},
			Answer: func(e lesson.Evidence) (string, error) {
				tier, there := e.After.Object(alpha).View(newVersion).Field("spec", "tier")
				return kit.Choose([]string{"kept", "erased"}, tier == "gold", there)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "accepted", Kind: lesson.Done, Eval: acceptedSilently(oldVersion, alpha)},
			{ID: "label", Kind: lesson.Done, Eval: labelled("green")},
			{ID: "kept", Kind: lesson.Done, Eval: areGold(alpha, bravo)},
		}, inPlace()...),
	}
}

// readAs is the first read of an object at a version that was answered with it; nil where nobody has read it. kubectl looks
// whether there is one before it makes one.
func readAs(e lesson.Evidence, version, object string) *evidence.Exchange {
	asked := e.About(http.MethodGet, version, object)
	return e.Find(func(x evidence.Exchange) bool { return asked(x) && !x.Refused() })
}
