package pitfalls

import (
	"context"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// oldClient is the field manager of a client that knows the old version alone.
const oldClient = "old-client"

// goldPatch gives an object what only the new version has.
const goldPatch = `{"spec":{"tier":"gold"}}`

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

// whatIsLeft is the question what the new version shows of alpha's tier, which was gold.
func whatIsLeft() *lesson.Prediction {
	return &lesson.Prediction{
		Options: []string{"kept", "default", "nothing"},
		Answer: func(e lesson.Evidence) (string, error) {
			view := e.After.Object(alpha).View(newVersion)
			tier, there := view.Field("spec", "tier")
			return kit.Choose([]string{"kept", "default", "nothing"}, tier == "gold", there, view != nil && view.Status == http.StatusOK)
		},
	}
}

// isErased checks that alpha is gold no more.
func isErased(e lesson.Evidence) lesson.Outcome {
	got := e.Value(alpha, newVersion, "spec", "tier")
	return kit.Holds(got != "gold" && e.Status(alpha, newVersion) == http.StatusOK, "alpha is not gold any more", "its tier is "+got)
}

// areGold checks the tier of objects at the new version.
func areGold(objects ...string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		for _, o := range objects {
			if got := e.Value(o, newVersion, "spec", "tier"); got != "gold" {
				return lesson.Holds(false, "gold", o+": "+got)
			}
		}
		return lesson.Holds(true, "gold", "gold")
	}
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
