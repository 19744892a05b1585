package pitfalls

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// FlipBack is the track of a CRD that somebody applies as it was, in the middle of a rewrite: every patch is accepted, and the
// objects end up at both versions. Only a guard on the CRD's generation notices.
func FlipBack() *lesson.Track {
	return pitfall("flip-back", 6, flipped(), flipUnguarded(), flipGuarded(), flipWayBack())
}

// The widgets that are rewritten before somebody flips the storage version back, and those after.
var (
	beforeFlip = []string{alpha, bravo}
	afterFlip  = []string{charlie, delta, echo}
)

func flipped() lesson.Step {
	return lesson.Step{
		ID:   "flip",
		Show: charlie,
		Actions: []lesson.Action{created(), widgets(), switched(),
			rewriteNamed("first", beforeFlip),
			flip(shared, "both"),
			rewriteNamed("rest", afterFlip),
		},
		Predict: &lesson.Prediction{
			Options: []string{"new", "mixed", "old"},
			Answer: func(e lesson.Evidence) (string, error) {
				left, moved := e.StoredAt(oldVersion), e.StoredAt(newVersion)
				return kit.Choose([]string{"mixed", "new", "old"}, left > 0 && moved > 0, moved > 0, left > 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "answered", Kind: lesson.Done, Eval: everyPatch},
			{ID: "mixed", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: mixed},
			{ID: "storage", Kind: lesson.Done, Eval: storageIs(oldVersion)},
		},
	}
}

func flipUnguarded() lesson.Step {
	trimmed := `{"status":{"storedVersions":["` + newVersion + `"]}}`
	ask := askRemoval(lesson.Accepted)
	ask.Kubectl = kit.FromManifest("kubectl apply --dry-run=server", shared, "remove")
	return lesson.Step{
		ID: "unguarded",
		Actions: []lesson.Action{{
			ID: "trim",
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Patch(ctx, recordPath(env), evidence.MergePatch, kit.Lab, []byte(trimmed))
				return err
			},
			Kubectl: kit.Kubectl(`kubectl patch crd CRD --subresource=status --type=merge -p '` + trimmed + `'`),
			Change:  kit.Lines("- status.storedVersions  v1alpha1"),
		}, ask},
		Predict: &lesson.Prediction{
			Options: []string{"storage", "removal", "neither"},
			Answer: func(e lesson.Evidence) (string, error) {
				trim, ask := e.Find(e.IsTrim()), kit.AskedCRD(e)
				return kit.Choose([]string{"storage", "removal", "neither"}, trim != nil && trim.Refused(), ask != nil && ask.Refused(), trim != nil && ask != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "storage", Kind: lesson.Invariant, Eval: storageIs(oldVersion)},
			{ID: "removable", Kind: lesson.Done, Eval: kit.WouldAccept},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

func flipGuarded() lesson.Step {
	return lesson.Step{
		ID:   "guarded",
		Show: charlie,
		Actions: []lesson.Action{{
			ID: "migrate",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := switched().Do(ctx, env); err != nil {
					return err
				}
				began, err := kit.Guard(ctx, env)
				if err != nil {
					return err
				}
				for _, part := range []lesson.Action{rewriteNamed("first", beforeFlip), flip(shared, "both"), rewriteNamed("rest", afterFlip)} {
					if err := part.Do(ctx, env); err != nil {
						return err
					}
				}
				_, err = env.Client.Patch(ctx, recordPath(env), evidence.JSONPatch, kit.Lab, []byte(fmt.Sprintf(guardedTrim, began.UID, began.Generation)))
				return err
			},
			Kubectl: guardedByHand,
			Change:  kit.Lines("  switch, flip and all once more; it notes uid and generation at its start,", "- status.storedVersions  v1alpha1, if they are still the same"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Reason: "Invalid"},
		}},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer:  trimAnswer,
		},
		Checks: []lesson.Check{
			{ID: "answered", Kind: lesson.Done, Eval: everyPatch},
			{ID: "refused", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome { return refused("the trim is refused", e.Find(e.IsTrim())) }},
			{ID: "record", Kind: lesson.Invariant, Eval: kit.Record(newVersion, oldVersion)},
			{ID: "mixed", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: mixed},
		},
	}
}

// guardedTrim trims if the CRD has the uid and the generation that were noted.
const guardedTrim = `[{"op":"test","path":"/metadata/uid","value":"%s"},{"op":"test","path":"/metadata/generation","value":%v},{"op":"replace","path":"/status/storedVersions","value":["` + newVersion + `"]}]`

func flipWayBack() lesson.Step {
	return lesson.Step{
		ID:   "way-back",
		Show: charlie,
		Actions: []lesson.Action{switched(), {
			ID: "rewrite",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				if env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, newVersion); err != nil {
					return err
				}
				return rewrite.Trim(ctx, env.Client, env.Resource, []string{newVersion}, env.Rewrite.Guard)
			},
			Kubectl: oneShell(kit.Kubectl(noteCRD), kit.RewriteCommands("NEW"), kit.Kubectl(trimNoted)),
			Change:  kit.Lines("~ every widget still stored at v1alpha1: a merge patch {} at v1beta1", "- status.storedVersions  v1alpha1, if uid and generation are those of the start"),
		}, relabel(), remove()},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer:  trimAnswer,
		},
		Checks: inPlace(),
	}
}

// ── actions ──

// rewriteNamed rewrites some widgets, one after the other.
func rewriteNamed(id string, names []string) lesson.Action {
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			for _, name := range names {
				if err := kit.Patch(ctx, env, newVersion, name, "{}"); err != nil {
					return err
				}
			}
			return nil
		},
		Kubectl: kit.Kubectl(rewriteByName(names)),
		Change:  kit.Lines("~ " + strings.Join(names, ", ") + ": a merge patch {} at v1beta1"),
	}
}

func rewriteByName(names []string) string {
	return "for w in " + strings.Join(names, " ") + "; do kubectl patch NEW $w --type=merge -p '{}'; done"
}

// What a shell notes of the CRD, and how it trims if that still holds.
const (
	noteCRD   = `uid=$(kubectl get crd CRD -o jsonpath='{.metadata.uid}'); generation=$(kubectl get crd CRD -o jsonpath='{.metadata.generation}')`
	trimNoted = `kubectl patch crd CRD --subresource=status --type=json -p '[{"op":"test","path":"/metadata/uid","value":"'$uid'"},{"op":"test","path":"/metadata/generation","value":'$generation'},{"op":"replace","path":"/status/storedVersions","value":["NEWVERSION"]}]'`
)

// guardedByHand is the whole of it, flip and all.
var guardedByHand = oneShell(kit.StorageCommands(true), kit.Kubectl("sleep 1", noteCRD, rewriteByName(beforeFlip), "# somebody else:"),
	kit.StorageCommands(false), kit.Kubectl("sleep 1", rewriteByName(afterFlip), trimNoted))

// oneShell makes one command of several: a shell has to remember what it noted.
func oneShell(parts ...kit.Commands) kit.Commands {
	return func(env *lesson.Env) []string { return []string{strings.Join(kit.Then(parts...)(env), "\n")} }
}

// recordPath is where the record is patched.
func recordPath(env *lesson.Env) string { return evidence.DefinitionPath(env.Resource) + "/status" }

// ── evidence ──

// trimAnswer answers the question what the server says to a trim.
func trimAnswer(e lesson.Evidence) (string, error) {
	x := e.Find(e.IsTrim())
	return kit.Choose([]string{"refused", "accepted"}, x != nil && x.Refused(), x != nil)
}

// everyPatch checks that the patch of every widget was accepted.
func everyPatch(e lesson.Evidence) lesson.Outcome {
	const want = "the patch of every widget is accepted"
	for _, name := range append(beforeFlip[:len(beforeFlip):len(beforeFlip)], afterFlip...) {
		if o := kit.Answered(http.MethodPatch, newVersion, name, http.StatusOK)(e); o.Result != lesson.Passed {
			return lesson.Holds(false, want, name+": "+o.Got)
		}
	}
	return lesson.Holds(true, want, want)
}

// mixed checks that those before the flip are stored at the new version, and all others at the old one.
func mixed(e lesson.Evidence) lesson.Outcome {
	return kit.StoredAt(func(e lesson.Evidence) map[string]int {
		return map[string]int{newVersion: len(beforeFlip), oldVersion: e.Widgets - len(beforeFlip)}
	})(e)
}
