package pitfalls

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/verdict"
)

// Ratcheting is the track of a new version that is stricter than the old one. What was invalid before may stay so, as long as
// nobody touches it: so most of such objects can be rewritten, one cannot, and none could be created again.
func Ratcheting() *lesson.Track {
	var t ratcheting
	return pitfall("ratcheting", 7, t.stricter(), t.rewrite(), t.restore(), t.wayBack())
}

// ratcheting has the track's steps. At the new version bravo's size is too large, and charlie and echo lack the tier that is
// required there; charlie has notes besides, in which any field may be.
type ratcheting struct{}

// The steps of ratcheting that have manifests.
const (
	ratchetStricter = "stricter"
	ratchetRestore  = "restore"
	ratchetWayBack  = "way-back"
)

// Patches of objects that the new version's schema refuses.
const (
	enlarge = `{"spec":{"size":21}}` // is as invalid as before
	shrink  = `{"spec":{"size":10}}`
)

func (ratcheting) stricter() lesson.Step {
	return lesson.Step{
		ID:   ratchetStricter,
		Show: bravo,
		Actions: []lesson.Action{
			kit.CreateCRD(ratchetStricter, "crd"),
			widgetsOf(ratchetStricter, "+ alpha, delta; bravo with a large size; charlie, echo without a tier"),
			switchedBy(ratchetStricter, "+ spec.versions[v1beta1]  served, storage", "+ spec.size  maximum; spec.tier  required there"),
			patch("repaint", newVersion, bravo, repaint, lesson.Accepted),
			patch("enlarge", newVersion, bravo, enlarge, lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Field: "spec.size"}),
		},
		Predict: &lesson.Prediction{
			Options: []string{"both", "one", "none"},
			Answer: func(e lesson.Evidence) (string, error) {
				first, second := patchOf(e, bravo, repaint), patchOf(e, bravo, enlarge)
				if first == nil || second == nil {
					return "", lesson.ErrNoAnswer
				}
				return kit.Choose([]string{"both", "one", "none"}, !first.Refused() && !second.Refused(), !first.Refused(), second.Refused())
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion, newVersion)},
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets - 1, newVersion: 1}
			})},
			{ID: "repainted", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("another color is accepted", patchOf(e, bravo, repaint))
			}},
			{ID: "refused", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return refusedFor("spec.size", patchOf(e, bravo, enlarge))
			}},
		},
	}
}

func (ratcheting) rewrite() lesson.Step {
	all := rewriteAll()
	all.Expect = lesson.Expect{Any: true} // the one that is refused is one of many
	all.Kubectl = kit.Kubectl(`for w in $(kubectl get NEW -o jsonpath='{.items[*].metadata.name}'); do kubectl patch NEW $w --type=merge -p '{}' || true; done`)
	return lesson.Step{
		ID:      "rewrite",
		Show:    charlie,
		Actions: []lesson.Action{all, patch("old", oldVersion, charlie, "{}", lesson.Accepted)},
		Predict: &lesson.Prediction{
			Options: []string{"all", "charlie", "invalid", "none"},
			Answer: func(e lesson.Evidence) (string, error) {
				no := func(object string) bool { x := patchOf(e, object, "{}"); return x != nil && x.Refused() }
				if patchOf(e, charlie, "{}") == nil {
					return "", lesson.ErrNoAnswer
				}
				return kit.Choose([]string{"none", "invalid", "charlie", "all"}, no(alpha), no(echo), no(charlie), true)
			},
		},
		Checks: []lesson.Check{
			{ID: "echo", Kind: lesson.Done, Eval: kit.Answered(http.MethodPatch, newVersion, echo, http.StatusOK)},
			{ID: "charlie", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return refusedFor("spec.tier", patchOf(e, charlie, "{}"))
			}},
			{ID: "old", Kind: lesson.Done, Eval: kit.Answered(http.MethodPatch, oldVersion, charlie, http.StatusOK)},
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{newVersion: e.Before.Stored.Total}
			})},
		},
	}
}

func (ratcheting) restore() lesson.Step {
	create := func(id, version string, expect lesson.Expect) lesson.Action {
		return lesson.Action{
			ID: id,
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, ratchetRestore, id, version)
			},
			Kubectl: kit.FromManifest("kubectl create", ratchetRestore, id),
			Change:  kit.Lines("+ bravo  as it was, at " + version),
			Expect:  expect,
		}
	}
	return lesson.Step{
		ID:   ratchetRestore,
		Show: bravo,
		Actions: []lesson.Action{{
			ID:      "delete",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.RemoveObject(ctx, env, newVersion, bravo) },
			Kubectl: kit.Kubectl("kubectl delete NEW " + bravo),
			Change:  kit.Lines("- bravo"),
		},
			create("backup", newVersion, lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Field: "spec.size"}),
			create("old", oldVersion, lesson.Accepted),
		},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodPost, newVersion, bravo)
				return kit.Choose([]string{"refused", "accepted"}, x != nil && x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "deleted", Kind: lesson.Done, Eval: kit.Answered(http.MethodDelete, newVersion, bravo, http.StatusOK)},
			{ID: "refused", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return refusedFor("spec.size", e.Sent(http.MethodPost, newVersion, bravo))
			}},
			{ID: "old", Kind: lesson.Done, Eval: kit.Answered(http.MethodPost, oldVersion, bravo, http.StatusCreated)},
			{ID: "there", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(http.StatusOK, e.Status(bravo, newVersion))
			}},
			{ID: "restorable", Kind: lesson.Invariant, Eval: kit.Finding(verdict.Restorable, verdict.Fail)},
		},
	}
}

func (ratcheting) wayBack() lesson.Step {
	return lesson.Step{
		ID:   ratchetWayBack,
		Show: charlie,
		Actions: []lesson.Action{
			mend(newVersion, []merge{{bravo, shrink}, {charlie, tierPatch}, {echo, tierPatch}}, "~ bravo's spec.size", "+ spec.tier of charlie and echo"),
			trim(), relabel(), removedBy(ratchetWayBack),
		},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "refused"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodPatch, newVersion, charlie)
				return kit.Choose([]string{"accepted", "refused"}, x != nil && !x.Refused(), x != nil)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "mended", Kind: lesson.Done, Eval: mended},
			{ID: "restorable", Kind: lesson.Invariant, Eval: kit.Finding(verdict.Restorable, verdict.Pass)},
		}, inPlace()...),
	}
}

// mended checks that what the new version's schema refused has been changed.
func mended(e lesson.Evidence) lesson.Outcome {
	want := []string{"bravo 10", "charlie silver", "echo silver"}
	return lesson.Expected(want, []string{"bravo " + e.Value(bravo, newVersion, "spec", "size"),
		"charlie " + e.Value(charlie, newVersion, "spec", "tier"), "echo " + e.Value(echo, newVersion, "spec", "tier")})
}
