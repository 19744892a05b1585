package pitfalls

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// The managers of the widgets: team owns their size, platform their color. The others come later.
const (
	platform = "platform"
	auditor  = "auditor"
	ops      = "ops"
)

// SSAAfterRemoval is the track of a migration that is clean by the bytes and by the record, and leaves managedFields behind:
// once the version is gone, every server-side apply is an error.
func SSAAfterRemoval() *lesson.Track {
	track := pitfall("ssa-after-removal", 6, ssaClean(), ssaBroken(), ssaRepairs(), ssaWayBack())
	track.Wrong = slices.DeleteFunc(track.Wrong, func(d lesson.Diagnosis) bool { return d.ID == "managers-gone" }) // a reset is one of the repairs
	return track
}

func ssaClean() lesson.Step {
	const step = "clean"
	return lesson.Step{
		ID:           step,
		ShowManagers: true,
		Actions: []lesson.Action{
			created(),
			applies(step, team, oldVersion, team, ""),
			applies(step, platform, oldVersion, platform, ""),
			switched(), rewriteAll(), trim(), relabelled("spared", delta, ""), remove(),
		},
		Predict: &lesson.Prediction{
			Options: []string{"nothing", "objects", "managers"},
			Answer: func(e lesson.Evidence) (string, error) {
				return kit.Choose([]string{"objects", "managers", "nothing"}, e.StoredAt(oldVersion) > 0, len(atOld(e)) > 0, e.After.CRD != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{newVersion: e.Widgets}
			})},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "removed", Kind: lesson.Done, Eval: isRemoved},
			{ID: "owners", Kind: lesson.Done, Eval: kit.All(team+" and "+platform+" own what they applied", owned(alpha, team, "size"), owned(alpha, platform, "color"))},
			{ID: "left", Kind: lesson.Done, Eval: entriesAt(alpha, oldVersion)},
			{ID: "spared", Kind: lesson.Done, Eval: entriesAt(delta, newVersion)},
		},
	}
}

func ssaBroken() lesson.Step {
	const step = "broken"
	anError := func(a lesson.Action) lesson.Action {
		a.Expect = lesson.Expect{Refused: true, Status: http.StatusInternalServerError}
		return a
	}
	return lesson.Step{
		ID:           step,
		ShowManagers: true,
		Actions: []lesson.Action{
			anError(applies(step, alpha, newVersion, team, "")),
			anError(applies(step, alpha, newVersion, team, "forced")),
			anError(applies(step, "newcomer", newVersion, auditor, "")),
			applies(step, delta, newVersion, team, ""),
			{
				ID: "patch",
				Do: func(ctx context.Context, env *lesson.Env) error {
					_, err := env.Client.Patch(ctx, env.Path(newVersion, echo), evidence.MergePatch, ops, []byte(black))
					return err
				},
				Kubectl: kit.Kubectl("kubectl patch NEW echo --field-manager=" + ops + " --type=merge -p '" + black + "'"),
				Change:  kit.Lines("~ ops patches echo's color, which is platform's"),
			},
		},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "conflict", "error"},
			Answer:  applyAnswer(alpha, team, false),
		},
		Checks: []lesson.Check{
			{ID: "alpha", Kind: lesson.Done, Eval: applied(alpha, team, false, http.StatusInternalServerError)},
			{ID: "forced", Kind: lesson.Done, Eval: applied(alpha, team, true, http.StatusInternalServerError)},
			{ID: "newcomer", Kind: lesson.Done, Eval: applied(alpha, auditor, false, http.StatusInternalServerError)},
			{ID: "delta", Kind: lesson.Done, Eval: applied(delta, team, false, http.StatusOK)},
			{ID: "patch", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("black", e.Value(echo, newVersion, "spec", "color"))
			}},
			{ID: "untracked", Kind: lesson.Done, Eval: owned(echo, platform, "color")},
		},
	}
}

// black is a color that nobody applied.
const black = `{"spec":{"color":"black"}}`

func ssaRepairs() lesson.Step {
	const step = "repairs"
	conflict, anError := applies(step, bravo, newVersion, team, ""), applies(step, charlie, newVersion, team, "")
	conflict.Expect = lesson.Expect{Refused: true, Status: http.StatusConflict, Reason: "Conflict"}
	anError.Expect = lesson.Expect{Refused: true, Status: http.StatusInternalServerError}
	return lesson.Step{
		ID:           step,
		Show:         bravo,
		ShowManagers: true,
		Actions: []lesson.Action{{
			ID: "reset",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Patch(ctx, env, newVersion, bravo, noManagers)
			},
			Kubectl: kit.Kubectl("kubectl patch NEW bravo --type=merge -p '" + noManagers + "'"),
			Change:  kit.Lines("- bravo's metadata.managedFields"),
		}, conflict, relabelled("one-entry", charlie, team), anError},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "conflict", "error"},
			Answer:  applyAnswer(bravo, team, false),
		},
		Checks: []lesson.Check{
			{ID: "reset", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("nobody", kit.OrNobody(kit.Managers(e.After.Object(bravo), kit.AsItIs)))
			}},
			{ID: "conflict", Kind: lesson.Done, Eval: applied(bravo, team, false, http.StatusConflict)},
			{ID: "one-entry", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("the patch of one entry is accepted", e.Find(func(x evidence.Exchange) bool {
					return x.ContentType == evidence.JSONPatch && x.To(kit.ObjectPath(e, newVersion, charlie))
				}))
			}},
			{ID: "kept", Kind: lesson.Invariant, Eval: entriesAt(charlie, oldVersion)},
			{ID: "charlie", Kind: lesson.Done, Eval: applied(charlie, team, false, http.StatusInternalServerError)},
		},
	}
}

// noManagers is the reset that the documentation of server-side apply names: whoever owned something owns nothing now.
const noManagers = `{"metadata":{"managedFields":[{}]}}`

func ssaWayBack() lesson.Step {
	const step = "way-back"
	return lesson.Step{
		ID:           step,
		ShowManagers: true,
		Actions: []lesson.Action{
			relabel(),
			applies("broken", alpha, newVersion, team, ""),
			applies("repairs", bravo, newVersion, team, "taken"),
		},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := applyBy(e, alpha, team, false)
				return kit.Choose([]string{"accepted", "refused"}, x != nil && !x.Refused(), x != nil)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "labels", Kind: lesson.Done, Eval: kit.NoEntryNames(oldVersion)},
			{ID: "alpha", Kind: lesson.Done, Eval: applied(alpha, team, false, http.StatusOK)},
			{ID: "owners", Kind: lesson.Done, Eval: kit.All(team+" and "+platform+" own what they applied", owned(alpha, team, "size"), owned(alpha, platform, "color"))},
			{ID: "bravo", Kind: lesson.Done, Eval: owned(bravo, team, "size")},
		}, inPlace()...),
	}
}

// ── actions ──

// applies is a server-side apply of a step's manifest by a manager. One that has a name of its own is with force: it takes what
// others own.
func applies(step, manifest, version, manager, forced string) lesson.Action {
	a := lesson.Action{
		ID: manifest,
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Apply(ctx, env, step, manifest, version, manager)
		},
		Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+manager, step, manifest),
		Change:  kit.Lines("  " + manager + " applies what is its own, server-side"),
	}
	if forced != "" {
		a.ID = forced
		a.Do = func(ctx context.Context, env *lesson.Env) error {
			return kit.ApplyForced(ctx, env, step, manifest, version, manager)
		}
		a.Kubectl = kit.FromManifest("kubectl apply --server-side --force-conflicts --field-manager="+manager, step, manifest)
		a.Change = kit.Lines("  the same, with force")
	}
	return a
}

// relabelled has the entries of one object name the new version; only those of one manager, where it is named.
func relabelled(id, object, manager string) lesson.Action {
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			r, err := env.Probe().Get(ctx, env.Path(newVersion, object), nil)
			if err != nil {
				return err
			}
			var o struct{ Metadata rewrite.Metadata }
			if err := json.Unmarshal(r.Body, &o); err != nil {
				return fmt.Errorf("read the managedFields of %s: %w", object, err)
			}
			var patch []string
			for i, m := range o.Metadata.ManagedFields {
				if m.Version() == oldVersion && (manager == "" || m.Manager == manager) {
					patch = append(patch, fmt.Sprintf(`{"op":"replace","path":"/metadata/managedFields/%d/apiVersion","value":"%s/%s"}`, i, env.Resource.Group, newVersion))
				}
			}
			if len(patch) == 0 {
				return nil
			}
			_, err = env.Client.Patch(ctx, env.Path(newVersion, object), evidence.JSONPatch, kit.Lab, []byte("["+strings.Join(patch, ",")+"]"))
			return err
		},
		Kubectl: kit.RelabelEntries(object, manager),
		Change:  kit.Lines("~ " + object + "'s metadata.managedFields[*].apiVersion  v1beta1" + ofManager(manager)),
	}
}

func ofManager(manager string) string {
	if manager == "" {
		return ""
	}
	return ", only the entry of " + manager
}

// ── evidence ──

// applyBy is the first server-side apply of an object by a manager; nil where there was none.
func applyBy(e lesson.Evidence, object, manager string, forced bool) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool {
		return x.ContentType == evidence.ApplyPatch && x.To(kit.ObjectPath(e, newVersion, object)) &&
			strings.Contains(x.Path, "fieldManager="+manager) && strings.Contains(x.Path, "force=true") == forced
	})
}

// applied checks how such an apply was answered.
func applied(object, manager string, forced bool, status int) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		x := applyBy(e, object, manager, forced)
		if x == nil {
			return lesson.Holds(false, fmt.Sprint(status), manager+" applied nothing")
		}
		return lesson.Holds(x.Status == status, fmt.Sprint(status), kit.Answer(*x))
	}
}

// applyAnswer answers the question how one was answered.
func applyAnswer(object, manager string, forced bool) func(lesson.Evidence) (string, error) {
	return func(e lesson.Evidence) (string, error) {
		x := applyBy(e, object, manager, forced)
		return kit.Choose([]string{"accepted", "conflict", "error"}, x != nil && !x.Refused(), x != nil && x.Status == http.StatusConflict, x != nil && x.Status >= 500)
	}
}

// owned checks that a manager owns a field of an object's spec.
func owned(object, manager, field string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		o := e.After.Object(object)
		return kit.Holds(kit.Owns(o, manager, field), manager+" owns spec."+field+" of "+object, kit.Owners(o, field))
	}
}

// entriesAt checks that every entry of an object's managedFields names a version.
func entriesAt(object, version string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		want := "every entry of " + object + " names " + version
		managers := kit.Managers(e.After.Object(object), kit.AsItIs)
		for _, m := range managers {
			if !strings.HasSuffix(m, "/"+version) {
				return lesson.Holds(false, want, m)
			}
		}
		return kit.Holds(len(managers) > 0, want, "no entries")
	}
}

// atOld are the entries that name the old version.
func atOld(e lesson.Evidence) []string {
	return kit.ManagersAt(e.After, e.Resource.Group+"/"+oldVersion)
}
