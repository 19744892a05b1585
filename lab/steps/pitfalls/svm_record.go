package pitfalls

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// SVMRecord is the track of a StorageVersionMigration that trims the record although objects are left: where it has failed,
// and, from a CRD's second one on, before its first write.
func SVMRecord() *lesson.Track {
	t := svmRecord{}
	track := pitfall("svm-record", 10, t.firstMigration(), t.secondMigration(), t.removal(), t.wayBack())
	track.Needs = []lesson.Needs{lesson.NeedsBytes, lesson.NeedsMigration}
	track.Subject = poison
	return track
}

// svmRecord has the track's steps.
type svmRecord struct{}

// poison is the object that the new version's schema refuses.
const poison = charlie

// tierPatch gives an object what the new version requires.
const tierPatch = `{"spec":{"tier":"silver"}}`

// tries is how often it is tried to see what a defect of the server, or chance, decides.
const tries = 2

// The steps whose manifests others use as well.
const (
	svmFirst   = "first-migration"
	svmSecond  = "second-migration"
	svmRemoval = "removal"
	svmWayBack = "way-back"
)

func (t svmRecord) firstMigration() lesson.Step {
	return lesson.Step{
		ID: svmFirst,
		Actions: []lesson.Action{kit.CreateCRD(svmFirst, "crd"), widgetsOf(svmFirst, "+ the widgets; charlie has no tier"), {
			ID:      "switch",
			Do:      t.switchStorage,
			Kubectl: kit.FromManifest("kubectl apply", svmFirst, "switch"),
			Change:  kit.Lines("+ spec.versions[v1beta1]  served, storage", "+ spec.tier  required there"),
		}, {
			ID: "migrate",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return t.migrate(ctx, env, svmFirst, func(m *rewrite.Migration) bool { return m.Ended })
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", svmFirst, "migrate"), kit.Kubectl("kubectl wait --for=condition=Failed --timeout=5m storageversionmigration/CRD")),
			Change:  kit.Lines("+ a StorageVersionMigration of the widgets"),
		}, t.ask()},
		Predict: &lesson.Prediction{
			Options: []string{"both", "new", "old"},
			Answer: func(e lesson.Evidence) (string, error) {
				is := e.After.StoredVersions()
				return kit.Choose([]string{"both", "new", "old"}, len(is) == 2, slices.Equal(is, []string{newVersion}), slices.Equal(is, []string{oldVersion}))
			},
		},
		Checks: []lesson.Check{
			{ID: "failed", Kind: lesson.Done, Eval: migrationFailed},
			{ID: "left", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: t.poisonIsOld},
			{ID: "record", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				if e.After.Lists(oldVersion) && migrationFailed(e).Result == lesson.Passed {
					return notShown(e, begins)
				}
				return kit.Record(newVersion)(e)
			}},
			{ID: "removable", Kind: lesson.Done, Eval: t.removable},
		},
	}
}

func (t svmRecord) secondMigration() lesson.Step {
	return lesson.Step{
		ID: svmSecond,
		Actions: []lesson.Action{{
			ID:      "roll-back",
			Do:      t.rollBack,
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", svmSecond, "roll-back"), kit.Kubectl("sleep 1"), kit.RewriteCommands("OLD")),
			Change:  kit.Lines("~ spec.versions[v1alpha1].storage  true", "~ every widget that is v1beta1: a merge patch {} at v1alpha1"),
		}, {
			ID:      "switch",
			Do:      t.switchStorage,
			Kubectl: kit.FromManifest("kubectl apply", svmFirst, "switch"),
			Change:  kit.Lines("~ spec.versions[v1beta1].storage   true"),
		}, {
			ID:      "migrate",
			Do:      t.catchTheTrim,
			Kubectl: kit.FromManifest("kubectl apply", svmSecond, "migrate"),
			Change:  kit.Lines("+ a second StorageVersionMigration"),
		}, t.ask(), {
			ID: "end",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return t.migrate(ctx, env, svmSecond, func(m *rewrite.Migration) bool { return m.Ended })
			},
			Kubectl: kit.Kubectl("kubectl wait --for=condition=Failed --timeout=5m storageversionmigration/CRD.again"),
			Change:  kit.Lines("  wait until it has ended"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"start", "end", "never"},
			Answer: func(e lesson.Evidence) (string, error) {
				ended := migrationFailed(e).Result == lesson.Passed
				return kit.Choose([]string{"start", "end", "never"}, t.trimmedFirst(e), ended && !e.After.Lists(oldVersion), ended)
			},
		},
		Checks: []lesson.Check{
			{ID: "restored", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "every widget at the old version, which the record names, and the new one for storage"
				o := e.AfterAction("switch")
				if o == nil {
					return lesson.Holds(false, want, "nobody saw it")
				}
				return lesson.Holds(o.Lists(oldVersion) && o.StorageVersion() == newVersion && o.Stored.ByVersion[oldVersion] == o.Stored.Total, want, seen(o))
			}},
			{ID: "trimmed-first", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				if !e.Migrated() || e.AfterAction("migrate") == nil {
					return lesson.Holds(false, "trimmed before the first write", "no second migration was seen")
				}
				if !t.trimmedFirst(e) {
					return notShown(e, begins)
				}
				return lesson.Holds(true, "trimmed before the first write", seen(e.AfterAction("migrate")))
			}},
			{ID: "removable", Kind: lesson.Done, Eval: t.removable},
			{ID: "failed", Kind: lesson.Done, Eval: migrationFailed},
			{ID: "left", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: t.poisonIsOld},
		},
	}
}

func (t svmRecord) removal() lesson.Step {
	return lesson.Step{
		ID: svmRemoval,
		Actions: []lesson.Action{{
			ID: "crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, svmRemoval, "crd") })
			},
			Kubectl: kit.PatchCRD(kit.RemoveOldest),
			Change:  kit.Lines("- spec.versions[v1alpha1]"),
			Expect:  lesson.Expect{Any: true}, // a release whose record is true refuses it
		}, {
			ID: "list",
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Get(ctx, env.Path(newVersion, ""), url.Values{"limit": {"500"}})
				return err
			},
			Kubectl: kit.Kubectl("sleep 1; kubectl get NEW"),
			Change:  kit.Lines("  list the widgets"),
			Expect:  lesson.Expect{Any: true},
		}},
		Predict: whatAListSays(),
		Checks: []lesson.Check{
			{ID: "removed", Kind: lesson.Done, Eval: t.ifRemoved(isRemoved)},
			{ID: "unreadable", Kind: lesson.Done, Eval: t.ifRemoved(func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(http.StatusInternalServerError, e.Status(poison, newVersion))
			})},
			{ID: "list", Kind: lesson.Done, Eval: t.ifRemoved(listRefused)},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

func (t svmRecord) wayBack() lesson.Step {
	return lesson.Step{
		ID: svmWayBack,
		Actions: []lesson.Action{{
			ID: "unserved",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, svmWayBack, "unserved"); err != nil {
					return err
				}
				if err := kit.Until(ctx, env, env.Path(newVersion, poison), kit.Answers(http.StatusOK)); err != nil {
					return err
				}
				return kit.Get(ctx, env, newVersion, poison)
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", svmWayBack, "unserved"), kit.Kubectl("sleep 1; kubectl get NEW "+poison)),
			Change:  kit.Lines("+ spec.versions[v1alpha1]  not served"),
		}, {
			ID: "mend",
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Patch(ctx, env.Path(newVersion, poison), evidence.MergePatch, kit.Lab, []byte(tierPatch))
				return err
			},
			Kubectl: kit.Kubectl(`sleep 1; kubectl patch NEW ` + poison + ` --type=merge -p '` + tierPatch + `'`),
			Change:  kit.Lines("+ charlie's spec.tier"),
		}, {
			ID: "rewrite",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				if env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, newVersion); err != nil {
					return err
				}
				return kit.Trim(ctx, env) // of a record that was true
			},
			Kubectl: kit.Then(kit.RewriteCommands("NEW"), kit.TrimCommands),
			Change:  kit.Lines("~ every widget still stored at v1alpha1: a merge patch {} at v1beta1", "  status.storedVersions, where it names v1alpha1"),
		}, relabel(), {
			ID: "remove",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, svmRemoval, "crd") })
			},
			Kubectl: kit.PatchCRD(kit.RemoveOldest),
			Change:  kit.Lines("- spec.versions[v1alpha1]"),
		}},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"readable", "lost"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Find(func(x evidence.Exchange) bool {
					return x.Method == http.MethodGet && x.To(kit.ObjectPath(e, newVersion, poison))
				})
				return kit.Choose([]string{"readable", "lost"}, x != nil && x.Status == http.StatusOK, x != nil)
			},
		},
		Checks: inPlace(),
	}
}

// ── actions ──

// switchStorage makes the new version the storage version, and waits until it is in effect.
func (t svmRecord) switchStorage(ctx context.Context, env *lesson.Env) error {
	return kit.SwitchStorage(svmFirst, "switch").Do(ctx, env)
}

// rollBack makes the old version the storage version again, and every object is stored at it.
func (t svmRecord) rollBack(ctx context.Context, env *lesson.Env) (err error) {
	if err := kit.ApplyCRD(ctx, env, svmSecond, "roll-back"); err != nil {
		return err
	}
	if _, err := kit.Rewriter(env).WaitInEffect(ctx, oldVersion, nil); err != nil {
		return err
	}
	env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, oldVersion)
	return err
}

// migrate starts the migration of a step, and follows it until what is seen is enough.
func (t svmRecord) migrate(ctx context.Context, env *lesson.Env, step string, enough func(*rewrite.Migration) bool) error {
	raw, err := kit.Migration(env, step, "migrate")
	if err != nil {
		return err
	}
	name, err := kit.Rewriter(env).StartMigration(ctx, raw)
	if err != nil {
		return err
	}
	env.Rewrite, err = kit.Rewriter(env).FollowMigration(ctx, newVersion, name, enough)
	return err
}

// catchTheTrim starts the second migration, and returns as soon as the record is trimmed. Where objects were written before
// that was seen, it goes back, and begins again.
func (t svmRecord) catchTheTrim(ctx context.Context, env *lesson.Env) error {
	for try := 1; ; try++ {
		err := t.migrate(ctx, env, svmSecond, func(m *rewrite.Migration) bool { return !slices.Contains(m.StoredVersions, oldVersion) })
		if err != nil || env.Rewrite.After.ByVersion[newVersion] == 0 || try == tries {
			return err
		}
		if err := t.migrate(ctx, env, svmSecond, func(m *rewrite.Migration) bool { return m.Ended }); err != nil {
			return err
		}
		if err := t.rollBack(ctx, env); err != nil {
			return err
		}
		if err := t.switchStorage(ctx, env); err != nil {
			return err
		}
	}
}

// ask asks by a dry run whether the old version may go.
func (t svmRecord) ask() lesson.Action {
	return lesson.Action{
		ID:      "ask",
		Do:      func(ctx context.Context, env *lesson.Env) error { return kit.AskCRD(ctx, env, svmRemoval, "crd") },
		Kubectl: kit.AskRemoval,
		Change:  kit.Lines("  the removal of v1alpha1, as a dry run"),
		Expect:  lesson.Expect{Any: true}, // a release whose record is true refuses it
	}
}

// ── evidence ──

// notShown is for what a defect of the server, or chance, did not show, and how often that was tried in the step.
func notShown(e lesson.Evidence, tries func(lesson.Evidence, evidence.Exchange) bool) lesson.Outcome {
	tried := 0
	for _, x := range e.Exchanges {
		if tries(e, x) {
			tried++
		}
	}
	return lesson.Outcome{Result: lesson.Skipped, Reason: fmt.Sprintf("Kubernetes %s did not show it; tried: %d", e.ServerVersion, tried)}
}

// begins says whether an exchange began a migration.
func begins(_ lesson.Evidence, x evidence.Exchange) bool {
	return x.Method == http.MethodPost && strings.Contains(x.Path, "/storageversionmigrations") && !x.Refused()
}

func seen(o *evidence.Observation) string {
	return fmt.Sprintf("storedVersions %v, stored %s", o.StoredVersions(), kit.Counts(o.Stored.ByVersion))
}

// migrationFailed checks what the CRD says of the last migration.
func migrationFailed(e lesson.Evidence) lesson.Outcome {
	got := "no condition StorageMigrating"
	if e.Migrated() {
		got = e.After.CRD.Conditions["StorageMigrating"]
	}
	return lesson.Expected("False MigrationFailed", got)
}

func (t svmRecord) poisonIsOld(e lesson.Evidence) lesson.Outcome {
	return lesson.Expected(poison+" stored at "+oldVersion, poison+" stored at "+e.After.Object(poison).StoredVersion())
}

// removable checks that the server would let the old version go, while objects are stored at it.
func (t svmRecord) removable(e lesson.Evidence) lesson.Outcome {
	x := kit.AskedCRD(e)
	if x != nil && x.Refused() && lesson.HasCause(*x, "status.storedVersions[0]") { // the record is true
		return notShown(e, kit.ChangesCRD)
	}
	return kit.WouldAccept(e)
}

// trimmedFirst says whether the record did not name the old version any more while every object was stored at it.
func (t svmRecord) trimmedFirst(e lesson.Evidence) bool {
	was, o := e.AfterAction("switch"), e.AfterAction("migrate")
	return was.Lists(oldVersion) && o != nil && !o.Lists(oldVersion) && o.Stored.Total > 0 && o.Stored.ByVersion[oldVersion] == o.Stored.Total
}

// ifRemoved makes a check only where the old version was removed.
func (t svmRecord) ifRemoved(check func(lesson.Evidence) lesson.Outcome) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		if e.Before.Lists(oldVersion) {
			return notShown(e, kit.ChangesCRD)
		}
		return check(e)
	}
}
