package pitfalls

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/verdict"
)

// The field that gets another name, before and after.
const (
	oldName = "color"
	newName = "paint"
)

// NoneRename is the track of a field that gets another name under strategy None: for the server these are two fields, and what
// is in the old one is dropped by the next write.
func NoneRename() *lesson.Track {
	return pitfall("none-rename", 6, noneRenameHidden(), noneRenameLost(), noneRenameWayBack())
}

func noneRenameHidden() lesson.Step {
	return lesson.Step{
		ID:      "hidden",
		Actions: []lesson.Action{created(), widgets(), switched()},
		Judge:   kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"renamed", "kept", "nothing"},
			Answer: func(e lesson.Evidence) (string, error) {
				view := e.After.Object(alpha).View(newVersion)
				_, kept := view.Field("spec", oldName)
				_, renamed := view.Field("spec", newName)
				return kit.Choose([]string{"renamed", "kept", "nothing"}, renamed, kept, view != nil && view.Status == http.StatusOK)
			},
		},
		Checks: []lesson.Check{
			{ID: "switched", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("served, storage", kit.Flags(e, newVersion))
			}},
			{ID: "hidden", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("nothing, nothing", e.Value(alpha, newVersion, "spec", oldName)+", "+e.Value(alpha, newVersion, "spec", newName))
			}},
			{ID: "seen", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				_, there := e.After.Object(alpha).View(oldVersion).Field("spec", oldName)
				return kit.Holds(there, oldName+" is read at "+oldVersion, "nothing")
			}},
			{ID: "bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(e.Value(alpha, oldVersion, "spec", oldName), e.Bytes(alpha, "spec", oldName))
			}},
			{ID: "foretold", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				f := e.Verdict.Finding(verdict.Conversion)
				if f == nil {
					return lesson.Holds(false, string(verdict.Fail), "nobody looked")
				}
				return lesson.Expected(verdict.Fail, f.Result)
			}},
		},
	}
}

func noneRenameLost() lesson.Step {
	return lesson.Step{
		ID:      "lost",
		Actions: []lesson.Action{rewriteStrictly(alpha, newVersion), rewriteStrictly(bravo, oldVersion)},
		Predict: &lesson.Prediction{
			Options: []string{"both", "old", "neither"},
			Answer: func(e lesson.Evidence) (string, error) {
				_, a := e.After.Object(alpha).View(oldVersion).Field("spec", oldName)
				_, b := e.After.Object(bravo).View(oldVersion).Field("spec", oldName)
				return kit.Choose([]string{"both", "old", "neither"}, a && b, b, !a)
			},
		},
		Checks: []lesson.Check{
			{ID: "strict", Kind: lesson.Done, Eval: kit.All("both writes are accepted, without a warning", acceptedStrictly(newVersion, alpha), acceptedStrictly(oldVersion, bravo))},
			{ID: "alpha", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: nameless(alpha)},
			{ID: "bravo", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: nameless(bravo)},
			{ID: "others", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.OnlyWritten(alpha, bravo)},
		},
	}
}

func noneRenameWayBack() lesson.Step {
	const step = "way-back"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "declare",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := declare(ctx, env, step, newVersion, charlie, oldName); err != nil {
					return err
				}
				if err := kit.Get(ctx, env, newVersion, alpha); err != nil {
					return err
				}
				return kit.Get(ctx, env, newVersion, charlie)
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, "declare"), kit.Kubectl("sleep 1; kubectl get NEW alpha charlie -o yaml")),
			Change:  kit.Lines("+ spec.versions[v1beta1]  color, beside paint"),
		}, {
			ID: "backup",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Restore(ctx, env, step, "backup", oldVersion)
			},
			Kubectl: kit.FromManifest("kubectl apply", step, "backup"),
			Change:  kit.Lines("+ alpha, bravo  spec.color, from the manifest that made them"),
		}, {
			ID:      "copy",
			Do:      copyName,
			Kubectl: kit.Kubectl(copyCommand),
			Change:  kit.Lines("+ every widget  spec.paint, what spec.color has", "- every widget  spec.color"),
		}, trim(), relabel(), remove()},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"all", "unwritten", "none"},
			Answer: func(e lesson.Evidence) (string, error) {
				a, c := e.Sent(http.MethodGet, newVersion, alpha), e.Sent(http.MethodGet, newVersion, charlie)
				_, written := kit.ResponseField(a, "spec", oldName)
				_, unwritten := kit.ResponseField(c, "spec", oldName)
				return kit.Choose([]string{"all", "unwritten", "none"}, written && unwritten, unwritten, a != nil && c != nil)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "shown", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				_, there := kit.ResponseField(e.Sent(http.MethodGet, newVersion, charlie), "spec", oldName)
				return kit.Holds(there, newVersion+" shows charlie's "+oldName, "it does not, or nobody asked")
			}},
			{ID: "saved", Kind: lesson.Done, Eval: kit.EveryPair("every "+newName+" is what "+oldName+" was", func(p kit.Pair) string {
				was, there := p.Was.View(oldVersion).Field("spec", oldName)
				if is, _ := p.Is.View(newVersion).Field("spec", newName); there && is != was {
					return kit.OrNothing(newName+": ", is, is != nil)
				}
				return ""
			})},
			{ID: "restored", Kind: lesson.Done, Eval: kit.All("alpha and bravo have a "+newName, has(alpha, newName), has(bravo, newName))},
		}, inPlace()...),
	}
}

// rewriteStrictly has an object written through a version by a request that asks for no change, and for strict validation. The
// command sends what it has read: no client can do more to keep it.
func rewriteStrictly(object, version string) lesson.Action {
	return lesson.Action{
		ID: object,
		Do: func(ctx context.Context, env *lesson.Env) error {
			_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodPatch, Path: env.Path(version, object), ContentType: evidence.MergePatch,
				Query: url.Values{"fieldManager": {kit.Lab}, "fieldValidation": {"Strict"}}, Body: []byte("{}")})
			return err
		},
		Kubectl: kit.Kubectl("kubectl get widgets." + version + ".GROUP " + object + " -o json |\n" +
			`  kubectl replace --raw "` + kit.CollectionURL(version) + "/" + object + `?fieldValidation=Strict" -f -`),
		Change: kit.Lines("~ " + object + "  no change is asked for, through " + version),
	}
}

// copyName gives every object the value of the old name under the new one. What has none is left alone.
func copyName(ctx context.Context, env *lesson.Env) error {
	return kit.PatchEach(ctx, env, newVersion, func(object *evidence.View) string {
		value, there := object.Field("spec", oldName)
		if !there {
			return ""
		}
		body, _ := json.Marshal(map[string]any{"spec": map[string]any{newName: value, oldName: nil}}) // what came as JSON
		return string(body)
	})
}

const copyCommand = `for w in $(kubectl get NEW -o jsonpath='{.items[*].metadata.name}'); do
  color=$(kubectl get NEW $w -o jsonpath='{.spec.color}')
  [ -z "$color" ] || kubectl patch NEW $w --type=merge -p '{"spec":{"paint":"'$color'","color":null}}'
done`

// ── evidence ──

// acceptedStrictly checks that an object was written through a version with strict validation, and nobody was warned.
func acceptedStrictly(version, object string) func(lesson.Evidence) lesson.Outcome {
	want := "a strict write of " + object + " through " + version + " is accepted, without a warning"
	return func(e lesson.Evidence) lesson.Outcome {
		x := e.Find(func(x evidence.Exchange) bool {
			return x.Method != http.MethodGet && x.To(kit.ObjectPath(e, version, object)) && strings.Contains(x.Path, "fieldValidation=Strict")
		})
		if x == nil {
			return lesson.Holds(false, want, "nobody asked")
		}
		return kit.Holds(!x.Refused() && len(x.Warnings) == 0, want, kit.Answer(*x)+" "+strings.Join(x.Warnings, "; "))
	}
}

// nameless checks that an object is stored at the new version, under neither name.
func nameless(object string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		return lesson.Expected(newVersion+": nothing, nothing", e.StoredVersion(object)+": "+e.Bytes(object, "spec", oldName)+", "+e.Bytes(object, "spec", newName))
	}
}

// has checks that an object has a field of spec at the new version.
func has(object, field string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		_, there := e.After.Object(object).View(newVersion).Field("spec", field)
		return kit.Holds(there, object+" has a "+field, object+" has none")
	}
}
