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
	track := pitfall("storage-switch-race", 5, raceWindow(), raceMigrator(), raceWaits())
	track.Subject, track.Named = racers[0], racers
	return track
}

// racers are the objects of the track, one for each try: it is written once, after a switch of its own. Chance decides how many
// of them are stored at the old version then; so many tries all but never miss.
var racers = func() (names []string) {
	for i := range 16 {
		names = append(names, fmt.Sprintf("race-%02d", i+1))
	}
	return names
}()

// racer is such an object. RACER stands for its name.
const racer = `{"apiVersion":"GROUP/NEWVERSION","kind":"Widget","metadata":{"name":"RACER","labels":{"app.kubernetes.io/managed-by":"crdlab"}},"spec":{"size":1}}`

// What is done with each of them by hand, where the tries are fewer.
const (
	storeAtOldByHand = "kubectl patch OLD race-$i --type=merge -p '{}'\n  "
	rewriteByHand    = "kubectl patch NEW race-$i --type=merge -p '{}'"
	triesByHand      = 3
)

func raceWindow() lesson.Step {
	return lesson.Step{
		ID: "window",
		Actions: []lesson.Action{created(), {
			ID: "race",
			Do: func(ctx context.Context, env *lesson.Env) error {
				for _, name := range racers {
					if err := kit.RemoveObject(ctx, asProbe(env), oldVersion, name); err != nil {
						return err
					}
				}
				return race(ctx, env, false, func(name string) error {
					body := strings.ReplaceAll(kit.Kubectl(racer)(env)[0], "RACER", name)
					_, err := env.Client.Create(ctx, env.Path(newVersion, ""), kit.Lab, []byte(body))
					return err
				})
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", shared, "both"), raceByHand("", "", "kubectl create -f - <<EOF\n"+strings.ReplaceAll(racer, "RACER", "race-$i")+"\nEOF")),
			Change:  kit.Lines("~ spec.versions[v1beta1].storage  true, and at once:", "+ a widget at v1beta1", "  and back; again and again"),
		}, tidy()},
		Predict: &lesson.Prediction{
			Options: []string{"new", "some", "old"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := observed(e, "race")
				late := o.Stored.ByVersion[oldVersion]
				return kit.Choose([]string{"new", "old", "some"}, late == 0 && o.Stored.Total > 0, late == o.Stored.Total && late > 0, late > 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "late", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: storedLate("race", http.MethodPost)},
			{ID: "tidied", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: allAtNew},
		},
	}
}

func raceMigrator() lesson.Step {
	return lesson.Step{
		ID: "migrator",
		Actions: []lesson.Action{{
			ID: "migrate",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return race(ctx, env, false, func(name string) error { return kit.Patch(ctx, env, newVersion, name, "{}") })
			},
			Kubectl: raceByHand(storeAtOldByHand, "", rewriteByHand),
			Change:  kit.Lines("~ spec.versions[v1beta1].storage  true, and at once:", "~ a widget: a merge patch {} at v1beta1", "  for every widget"),
		}, trim(), askRemoval(lesson.Accepted), tidy()},
		Predict: &lesson.Prediction{
			Options: []string{"refused", "accepted"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := kit.AskedCRD(e)
				return kit.Choose([]string{"refused", "accepted"}, x != nil && x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "answered", Kind: lesson.Done, Eval: everyTry(http.MethodPatch)},
			{ID: "late", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: storedLate("ask", http.MethodPatch)},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "removable", Kind: lesson.Done, Eval: kit.WouldAccept},
			{ID: "tidied", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: allAtNew},
		},
	}
}

func raceWaits() lesson.Step {
	return lesson.Step{
		ID: "wait",
		Actions: []lesson.Action{{
			ID: "migrate",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return race(ctx, env, true, func(name string) error { return kit.Patch(ctx, env, newVersion, name, "{}") })
			},
			Kubectl: raceByHand(storeAtOldByHand, "sleep 1; ", rewriteByHand),
			Change:  kit.Lines("~ spec.versions[v1beta1].storage  true, and *wait*:", "~ a widget: a merge patch {} at v1beta1", "  for every widget"),
		}, trim(), remove()},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"none", "some"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := observed(e, "migrate")
				return kit.Choose([]string{"some", "none"}, o.Stored.ByVersion[oldVersion] > 0, o.Stored.Total > 0)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "answered", Kind: lesson.Done, Eval: everyTry(http.MethodPatch)},
			{ID: "none-late", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := observed(e, "migrate")
				return lesson.Expected(kit.Counts(map[string]int{newVersion: o.Stored.Total}), kit.Counts(o.Stored.ByVersion))
			}},
		}, inPlace()...),
	}
}

// ── actions ──

// race switches the storage version for every racer anew and has it written: at once, or when the switch is in effect. What
// is put back for the next try is no part of what is shown.
func race(ctx context.Context, env *lesson.Env, wait bool, write func(racer string) error) error {
	unseen := asProbe(env)
	for _, name := range racers {
		if err := flip("back").Do(ctx, unseen); err != nil {
			return err
		}
		if err := storeAtOld(ctx, unseen, name); err != nil {
			return err
		}
		if err := kit.ApplyCRD(ctx, env, shared, "switch"); err != nil {
			return err
		}
		if wait {
			if _, err := kit.Rewriter(env).WaitInEffect(ctx, newVersion, nil); err != nil {
				return err
			}
		}
		if err := write(name); err != nil {
			return err
		}
	}
	_, err := kit.Rewriter(env).WaitInEffect(ctx, newVersion, nil)
	return err
}

// storeAtOld has an object stored at the old version, while that is the storage version; that it is not there is good.
func storeAtOld(ctx context.Context, env *lesson.Env, name string) error {
	r, err := env.Client.Patch(ctx, env.Path(oldVersion, name), evidence.MergePatch, kit.Lab, []byte("{}"))
	if err != nil || r.Status == http.StatusNotFound {
		return err
	}
	return r.Err()
}

// raceByHand are a few tries in a shell.
func raceByHand(before, wait, write string) kit.Commands {
	return func(env *lesson.Env) []string {
		toOld, toNew := kit.StorageCommands(false)(env)[0], kit.StorageCommands(true)(env)[0]
		return kit.Kubectl("for i in 01 02 03; do\n  " + toOld + "; sleep 1\n  " + before + toNew + "\n  " + wait + write + "\ndone")(env)
	}
}

// tidy rewrites what chance has left at the old version, out of what is shown: the next step begins alike, whatever that was.
func tidy() lesson.Action {
	a := rewriteAll()
	a.ID = "tidy"
	a.Do = func(ctx context.Context, env *lesson.Env) (err error) {
		env.Rewrite, err = kit.Rewriter(asProbe(env)).Rewrite(ctx, newVersion)
		return err
	}
	return a
}

// ── evidence ──

// written are the requests that wrote the racers, through the new version.
func written(method string) func(lesson.Evidence, evidence.Exchange) bool {
	return func(e lesson.Evidence, x evidence.Exchange) bool {
		return slices.ContainsFunc(racers, func(name string) bool { return e.About(method, newVersion, name)(x) })
	}
}

// everyTry checks that there were tries enough, and that the server accepted each.
func everyTry(method string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		const want = "every write is accepted"
		tries := 0
		for _, x := range e.Exchanges {
			if !written(method)(e, x) {
				continue
			}
			if x.Refused() {
				return lesson.Holds(false, want, kit.Answer(x))
			}
			tries++
		}
		return kit.Holds(tries >= triesByHand, want, fmt.Sprintf("tried: %d", tries))
	}
}

// storedLate checks that racers were stored at the old version all the same. That is chance.
func storedLate(action, method string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		if o := everyTry(method)(e); o.Result != lesson.Passed {
			return o
		}
		o := observed(e, action)
		late := o.Stored.ByVersion[oldVersion]
		if late == 0 {
			return notShown(e, written(method))
		}
		return lesson.Holds(true, "some are stored at "+oldVersion, fmt.Sprintf("%d of %d", late, o.Stored.Total))
	}
}

// allAtNew checks that nothing is stored at the old version any more.
func allAtNew(e lesson.Evidence) lesson.Outcome {
	return kit.StoredAt(func(e lesson.Evidence) map[string]int { return map[string]int{newVersion: max(e.Total(), triesByHand)} })(e)
}
