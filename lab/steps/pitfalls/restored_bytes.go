package pitfalls

import (
	"context"
	"fmt"
	"net/http"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// RestoredBytes is the track of a restore of etcd after a migration: old bytes are back, behind a record that knows nothing of
// them and a CRD that cannot read them.
func RestoredBytes() *lesson.Track {
	var t restoring
	track := pitfall("restored-bytes", 6, t.backup(), t.migrated(), t.restored(), t.wayBack())
	track.Needs = []lesson.Needs{lesson.NeedsBytes, lesson.NeedsRestore}
	return track
}

// restoring has the track's steps.
type restoring struct{}

// restoreBackup is the step at whose end the backup is made.
const restoreBackup = "backup"

// restoredObjects are those whose bytes are put back.
var restoredObjects = []string{alpha, bravo}

func (restoring) backup() lesson.Step {
	return lesson.Step{
		ID:      restoreBackup,
		Actions: []lesson.Action{created(), widgets()},
		Predict: &lesson.Prediction{
			Options: []string{"one", "each", "none"},
			Answer: func(e lesson.Evidence) (string, error) {
				named := e.StoredVersion(alpha) != ""
				return kit.Choose([]string{"one", "each", "none"}, named && e.Total() == e.Widgets, named && e.Total() > e.Widgets, e.Total() > 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets}
			})},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion)},
		},
	}
}

func (restoring) migrated() lesson.Step {
	return lesson.Step{
		ID:      "migrated",
		Actions: []lesson.Action{switched(), rewriteAll(), trim(), relabel(), remove()},
		Judge:   kit.Judge,
		Predict: kit.WhichVerdict(),
		Checks:  inPlace(),
	}
}

func (restoring) restored() lesson.Step {
	gone := lesson.Expect{Refused: true, Status: http.StatusInternalServerError}
	return lesson.Step{
		ID: "restored",
		Actions: []lesson.Action{
			{ID: "restore", Do: restore, Change: kit.Lines("~ alpha, bravo: their bytes of before the migration, in etcd")},
			get("old", newVersion, alpha, gone),
			get("new", newVersion, charlie, lesson.Accepted),
			{
				ID:      "list",
				Do:      func(ctx context.Context, env *lesson.Env) error { return kit.List(ctx, env, newVersion, false) },
				Kubectl: kit.Kubectl("kubectl get NEW"),
				Change:  kit.Lines("  list the widgets"),
				Expect:  gone,
			},
		},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"readable", "missing", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodGet, newVersion, alpha)
				if x == nil {
					return "", lesson.ErrNoAnswer
				}
				return kit.Choose([]string{"readable", "missing", "error"}, !x.Refused(), x.Status == http.StatusNotFound, true)
			},
		},
		Checks: []lesson.Check{
			{ID: "bytes", Kind: lesson.Done, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: len(restoredObjects), newVersion: e.Before.Stored.Total - len(restoredObjects)}
			})},
			{ID: "record", Kind: lesson.Invariant, Eval: kit.Record(newVersion)},
			{ID: "old", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, alpha, http.StatusInternalServerError)},
			{ID: "new", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, charlie, http.StatusOK)},
			{ID: "list", Kind: lesson.Done, Eval: listRefused},
			{ID: "found", Kind: lesson.Invariant, Eval: kit.Finding(verdict.StoredObjects, verdict.Fail)},
		},
	}
}

// restore puts bytes of before the migration back into etcd, and waits until they are what the server reads.
func restore(ctx context.Context, env *lesson.Env) error {
	to, can := env.Storage.(storage.Writer)
	if !can {
		return fmt.Errorf("the etcd of %s cannot be written to; take the track on an embedded or kind cluster", env.Resource)
	}
	backup := env.Earlier(restoreBackup)
	for _, name := range restoredObjects {
		o := backup.Object(name)
		if o == nil || o.Stored == nil {
			return fmt.Errorf("there is no backup of %s; press r to begin again", name)
		}
		v := &storage.Value{Key: o.Stored.Key, Namespace: o.Namespace, Name: o.Name, Data: o.Stored.Value}
		if err := to.Put(ctx, env.Resource, v); err != nil {
			return err
		}
	}
	last := restoredObjects[len(restoredObjects)-1]
	return kit.Until(ctx, env, env.Path(newVersion, last), kit.Answers(http.StatusInternalServerError))
}

func (restoring) wayBack() lesson.Step {
	return lesson.Step{
		ID:      "way-back",
		Actions: []lesson.Action{addUnserved(alpha), rewriteAll(), relabel(), remove()},
		Judge:   kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"both", "new", "old"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := e.AfterAction("unserved")
				if o == nil { // done by hand: only the end was seen
					o = e.After
				}
				return kit.Choose([]string{"both", "new", "old"}, o.Lists(oldVersion) && o.Lists(newVersion), o.Lists(newVersion), o.Lists(oldVersion))
			},
		},
		Checks: inPlace(),
	}
}
