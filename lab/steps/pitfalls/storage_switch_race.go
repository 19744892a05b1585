package pitfalls

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// StorageSwitchRace is the track of a write that is sent as soon as the switch of the storage version is answered: often it is
// still stored at the old version, and a migrator that does not wait counts it as done.
func StorageSwitchRace() *lesson.Track {
	track := pitfall("storage-switch-race", 4, raceHasty(), raceWaits())
	track.Subject, track.Named = racers[0], racers
	return track
}

// racers are the objects of the track, one for each try: it is rewritten once, after a switch of its own. Chance decides how
// many of them are stored at the old version then; so many tries all but never miss.
var racers = func() (names []string) {
	for i := range 12 {
		names = append(names, fmt.Sprintf("race-%02d", i+1))
	}
	return names
}()

// racer is such an object. RACER stands for its name.
const racer = `{"apiVersion":"GROUP/OLDVERSION","kind":"Widget","metadata":{"name":"RACER","labels":{"app.kubernetes.io/managed-by":"crdlab"}},"spec":{"size":1}}`

// triesByHand is how many of them a shell takes.
const triesByHand = 3

func eachByHand(commands string) string { return "for i in 01 02 03; do\n  " + commands + "\ndone" }

// raceStep has the manifests of the CRD: here the new version has no default, for whether one gets into the bytes would be
// chance as well.
const raceStep = "hasty"

func raceHasty() lesson.Step {
	return lesson.Step{
		ID: raceStep,
		Actions: []lesson.Action{created(), {
			ID:      "widgets",
			Do:      createRacers,
			Kubectl: kit.Kubectl(eachByHand("echo '" + racer + `' | sed "s/RACER/race-$i/" | kubectl apply -f -`)),
			Change:  kit.Lines("+ the widgets  at v1alpha1"),
		}, {
			ID:      "migrate",
			Do:      func(ctx context.Context, env *lesson.Env) error { return race(ctx, env, false) },
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", raceStep, "both"), raceByHand("")),
			Change:  kit.Lines("~ spec.versions[v1beta1].storage  true, and at once:", "~ a widget: a merge patch {} at v1beta1", "  back, and the next widget"),
		}, trim(), {
			ID:      "ask",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.AskCRD(ctx, env, raceStep, "remove") },
			Kubectl: kit.AskRemoval,
			Change:  kit.Lines("  the removal of v1alpha1, as a dry run"),
		}, {
			ID: "tidy", // out of what is shown: the next step begins alike, whatever chance has left
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Rewrite, err = kit.Rewriter(asProbe(env)).Rewrite(ctx, newVersion)
				return err
			},
			Kubectl: kit.RewriteCommands("NEW"),
			Change:  kit.Lines("~ every widget still stored at v1alpha1: a merge patch {} at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"new", "some", "old"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := observed(e, "ask")
				late := o.Stored.ByVersion[oldVersion]
				return kit.Choose([]string{"new", "old", "some"}, late == 0 && o.Stored.Total > 0, late == o.Stored.Total && late > 0, late > 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "answered", Kind: lesson.Done, Eval: everyTry},
			{ID: "late", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: storedLate},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "removable", Kind: lesson.Done, Eval: kit.WouldAccept},
			{ID: "tidied", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{newVersion: e.Total()}
			})},
		},
	}
}

func raceWaits() lesson.Step {
	gone := remove()
	gone.Do = func(ctx context.Context, env *lesson.Env) error {
		return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, raceStep, "remove") })
	}
	return lesson.Step{
		ID: "wait",
		Actions: []lesson.Action{{
			ID:      "migrate",
			Do:      func(ctx context.Context, env *lesson.Env) error { return race(ctx, env, true) },
			Kubectl: raceByHand("sleep 1; "),
			Change:  kit.Lines("~ spec.versions[v1beta1].storage  true, and wait:", "~ a widget: a merge patch {} at v1beta1", "  back, and the next widget"),
		}, trim(), relabel(), gone},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"none", "some"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := observed(e, "migrate")
				return kit.Choose([]string{"some", "none"}, o.Stored.ByVersion[oldVersion] > 0, o.Stored.Total > 0)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "answered", Kind: lesson.Done, Eval: everyTry},
			{ID: "none-late", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := observed(e, "migrate")
				return lesson.Expected(kit.Counts(map[string]int{newVersion: o.Stored.Total}), kit.Counts(o.Stored.ByVersion))
			}},
		}, inPlace()...),
	}
}

// ── actions ──

// createRacers creates those that are not there yet.
func createRacers(ctx context.Context, env *lesson.Env) error {
	for _, name := range racers {
		there, err := env.Probe().Get(ctx, env.Path(oldVersion, name), nil)
		if err != nil {
			return err
		}
		if there.Status == http.StatusOK {
			continue
		}
		body := strings.ReplaceAll(kit.Kubectl(racer)(env)[0], "RACER", name)
		if _, err := env.Client.Create(ctx, env.Path(oldVersion, ""), kit.Lab, []byte(body)); err != nil {
			return err
		}
	}
	return nil
}

// race switches the storage version for every racer anew and rewrites it: at once, or when the switch is in effect. What is put
// back for the next try is no part of what is shown.
func race(ctx context.Context, env *lesson.Env, wait bool) error {
	for _, name := range racers {
		if err := storeAtOld(ctx, asProbe(env), name); err != nil {
			return err
		}
		if err := kit.ApplyCRD(ctx, env, raceStep, "switch"); err != nil {
			return err
		}
		if wait {
			if _, err := kit.Rewriter(env).WaitInEffect(ctx, newVersion, nil); err != nil {
				return err
			}
		}
		if err := kit.Patch(ctx, env, newVersion, name, "{}"); err != nil {
			return err
		}
	}
	_, err := kit.Rewriter(env).WaitInEffect(ctx, newVersion, nil)
	return err
}

// storeAtOld makes the old version the storage version again, and has an object stored at it.
func storeAtOld(ctx context.Context, env *lesson.Env, name string) error {
	if err := flip(raceStep, "both").Do(ctx, env); err != nil {
		return err
	}
	r, err := env.Client.Patch(ctx, env.Path(oldVersion, name), evidence.MergePatch, kit.Lab, []byte("{}"))
	if err != nil {
		return err
	}
	return r.Err()
}

// raceByHand are a few tries in a shell.
func raceByHand(wait string) kit.Commands {
	return func(env *lesson.Env) []string {
		toOld, toNew := kit.StorageCommands(false)(env)[0], kit.StorageCommands(true)(env)[0]
		return kit.Kubectl(eachByHand(toOld + "; sleep 1\n  kubectl patch OLD race-$i --type=merge -p '{}'\n  " + toNew + "\n  " + wait + "kubectl patch NEW race-$i --type=merge -p '{}'"))(env)
	}
}

// ── evidence ──

// rewritten are the requests that rewrote the racers, through the new version.
func rewritten(e lesson.Evidence, x evidence.Exchange) bool {
	return x.ContentType == evidence.MergePatch && slices.ContainsFunc(racers, func(name string) bool { return e.About(http.MethodPatch, newVersion, name)(x) })
}

// everyTry checks that there were tries enough, and that the server accepted each.
func everyTry(e lesson.Evidence) lesson.Outcome {
	const want = "every patch is accepted"
	tries := 0
	for _, x := range e.Exchanges {
		if x.Actor == evidence.ByProbe || !rewritten(e, x) {
			continue
		}
		if x.Refused() {
			return lesson.Holds(false, want, kit.Answer(x))
		}
		tries++
	}
	return kit.Holds(tries >= triesByHand, want, fmt.Sprintf("tried: %d", tries))
}

// storedLate checks that racers were stored at the old version all the same. That is chance.
func storedLate(e lesson.Evidence) lesson.Outcome {
	if o := everyTry(e); o.Result != lesson.Passed {
		return o
	}
	o := observed(e, "ask")
	late := o.Stored.ByVersion[oldVersion]
	if late == 0 {
		return notShown(e, rewritten)
	}
	return lesson.Holds(true, "some are stored at "+oldVersion, fmt.Sprintf("%d of %d", late, o.Stored.Total))
}
