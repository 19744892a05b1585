package pitfalls

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// OldClientWrite is the track of a client that knows the old version alone, and asks for a label: what only the new version has
// is gone from the object.
func OldClientWrite() *lesson.Track {
	return pitfall("old-client-write", 5, oldClientReads(), oldClientWrites(), oldClientWayBack())
}

// oldClient is the field manager of a client that knows the old version alone.
const oldClient = "old-client"

// goldPatch gives an object what only the new version has.
const goldPatch = `{"spec":{"tier":"gold"}}`

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
		Predict: &lesson.Prediction{
			Options: []string{"kept", "default", "nothing"},
			Answer: func(e lesson.Evidence) (string, error) {
				was, is := e.Before.Object(alpha).View(newVersion), e.After.Object(alpha).View(newVersion)
				before, _ := was.Field("spec", "tier")
				after, there := is.Field("spec", "tier")
				return kit.Choose([]string{"kept", "default", "nothing"}, there && before == after, there, is != nil && is.Status == http.StatusOK)
			},
		},
		Checks: []lesson.Check{
			{ID: "accepted", Kind: lesson.Done, Eval: acceptedSilently(oldVersion, alpha)},
			{ID: "label", Kind: lesson.Done, Eval: labelled("blue")},
			{ID: "erased", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				was, _ := e.Before.Object(alpha).View(newVersion).Field("spec", "tier")
				is, there := e.After.Object(alpha).View(newVersion).Field("spec", "tier")
				return kit.Holds(was != nil && is != was, "alpha's tier is not what it was", kit.OrNothing("tier: ", is, there))
			}},
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
				if err := kit.ApplyCRD(ctx, env, step, "declare"); err != nil {
					return err
				}
				shows := func(r *evidence.Response) bool {
					_, there := kit.ResponseField(&r.Exchange, "spec", "tier")
					return there
				}
				return kit.Until(ctx, env, env.Path(oldVersion, bravo), shows)
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
			{ID: "kept", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("gold, gold", e.Value(alpha, newVersion, "spec", "tier")+", "+e.Value(bravo, newVersion, "spec", "tier"))
			}},
		}, inPlace()...),
	}
}

// ── actions ──

// makeGold gives objects a tier, through the new version.
func makeGold(id string, objects ...string) lesson.Action {
	var commands []string
	for _, o := range objects {
		commands = append(commands, "kubectl patch NEW "+o+" --type=merge -p '"+goldPatch+"'")
	}
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			for _, o := range objects {
				if err := kit.Patch(ctx, env, newVersion, o, goldPatch); err != nil {
					return err
				}
			}
			return nil
		},
		Kubectl: kit.Kubectl(commands...),
		Change:  kit.Lines("~ " + strings.Join(objects, ", ") + "  spec.tier  gold, through v1beta1"),
	}
}

// labelAsOldClient puts a label on alpha through the old version; nothing else is asked for.
func labelAsOldClient(id, team string) lesson.Action {
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			_, err := env.Client.Patch(ctx, env.Path(oldVersion, alpha), evidence.MergePatch, oldClient, []byte(`{"metadata":{"labels":{"team":"`+team+`"}}}`))
			return err
		},
		Kubectl: kit.Kubectl("kubectl label OLD alpha team=" + team + " --overwrite --field-manager=" + oldClient),
		Change:  kit.Lines("+ alpha  the label team: " + team + ", through v1alpha1"),
	}
}

// ── evidence ──

// readAs is the first read of an object at a version that was answered with it; nil where nobody has read it. kubectl looks
// whether there is one before it makes one.
func readAs(e lesson.Evidence, version, object string) *evidence.Exchange {
	asked := e.About(http.MethodGet, version, object)
	return e.Find(func(x evidence.Exchange) bool { return asked(x) && !x.Refused() })
}

// acceptedSilently checks that a patch of an object through a version was accepted, and nobody was warned.
func acceptedSilently(version, object string) func(lesson.Evidence) lesson.Outcome {
	want := "the patch of " + object + " at " + version + " is accepted, without a warning"
	return func(e lesson.Evidence) lesson.Outcome {
		x := e.Sent(http.MethodPatch, version, object)
		if x == nil {
			return lesson.Holds(false, want, "nobody asked")
		}
		return kit.Holds(!x.Refused() && len(x.Warnings) == 0, want, kit.Answer(*x)+" "+strings.Join(x.Warnings, "; "))
	}
}

// labelled checks the label of alpha.
func labelled(team string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		return lesson.Expected(team, e.Value(alpha, newVersion, "metadata", "labels", "team"))
	}
}
