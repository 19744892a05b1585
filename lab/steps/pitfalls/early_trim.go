package pitfalls

import (
	"context"
	"net/http"
	"net/url"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// EarlyTrim is the track of a record that was trimmed while objects were still old: the server believes it, lets the version
// go, and cannot read them any more.
func EarlyTrim() *lesson.Track {
	return pitfall("early-trim", 6, earlyTrimHalfWay(), earlyTrimDeclared(), earlyTrimReaders(), earlyTrimHandsTied(), earlyTrimWayBack())
}

func earlyTrimHalfWay() lesson.Step {
	return lesson.Step{
		ID:      "half-way",
		Actions: []lesson.Action{created(), widgets(), switched(), makeFoxtrot(), askRemoval(lesson.Expect{Refused: true, Status: http.StatusUnprocessableEntity, Field: "status.storedVersions[0]"})},
		Predict: &lesson.Prediction{
			Options: []string{"refused", "accepted"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := kit.AskedCRD(e)
				return kit.Choose([]string{"refused", "accepted"}, x != nil && x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets, newVersion: 1}
			})},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion, newVersion)},
			{ID: "refused", Kind: lesson.Done, Eval: kit.RemovalRefused},
		},
	}
}

func earlyTrimDeclared() lesson.Step {
	return lesson.Step{
		ID:      "trim",
		Actions: []lesson.Action{trim(), remove()},
		Predict: &lesson.Prediction{
			Options: []string{"counts", "refuses", "believes"},
			Answer: func(e lesson.Evidence) (string, error) {
				trimmed := e.Find(e.IsTrim())
				removed := e.Find(func(x evidence.Exchange) bool { return kit.ChangesCRD(e, x) })
				return kit.Choose([]string{"counts", "refuses", "believes"}, trimmed != nil && trimmed.Refused(),
					removed != nil && removed.Refused(), removed != nil && e.After.Version(oldVersion) == nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "removed", Kind: lesson.Done, Eval: isRemoved},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

// unanswered is what the server says to a request for which it would have to read what it cannot.
var unanswered = lesson.Expect{Refused: true, Status: http.StatusInternalServerError}

func earlyTrimReaders() lesson.Step {
	return lesson.Step{
		ID: "readers",
		Actions: []lesson.Action{
			get("new", newVersion, foxtrot, lesson.Accepted),
			get("old", newVersion, alpha, unanswered),
			list("list", newVersion, unanswered),
			watch(lesson.Expect{Refused: true}),
		},
		Predict: whatAListSays(),
		Checks: []lesson.Check{
			{ID: "new", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, foxtrot, http.StatusOK)},
			{ID: "old", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, alpha, http.StatusInternalServerError)},
			{ID: "list", Kind: lesson.Done, Eval: listRefused},
			{ID: "watch", Kind: lesson.Done, Eval: watchRefused},
		},
	}
}

func earlyTrimHandsTied() lesson.Step {
	const step = "hands-tied"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "create",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "create", newVersion)
			},
			Kubectl: kit.FromManifest("kubectl create", step, "create"),
			Change:  kit.Lines("  create alpha once more; delete alpha"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusConflict},
		}, {
			ID: "delete",
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Delete(ctx, env.Path(newVersion, alpha))
				return err
			},
			Kubectl: kit.Kubectl("kubectl delete NEW alpha"),
			Expect:  unanswered,
		}, {
			ID: "delete-crd",
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodDelete, Path: evidence.DefinitionPath(env.Resource), Query: url.Values{"dryRun": {"All"}}})
				return err
			},
			Kubectl: kit.Kubectl("kubectl delete crd CRD --dry-run=server"),
			Change:  kit.Lines("  delete the CRD, as a dry run"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"created", "taken", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodPost, newVersion, alpha)
				return kit.Choose([]string{"created", "taken", "error"}, x != nil && !x.Refused(), x != nil && x.Status == http.StatusConflict, x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "create", Kind: lesson.Done, Eval: kit.Answered(http.MethodPost, newVersion, alpha, http.StatusConflict)},
			{ID: "delete", Kind: lesson.Done, Eval: kit.Answered(http.MethodDelete, newVersion, alpha, http.StatusInternalServerError)},
			{ID: "delete-crd", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("the CRD could be deleted, as a dry run", e.Find(func(x evidence.Exchange) bool {
					return x.Method == http.MethodDelete && kit.ChangesCRD(e, x) && x.DryRun()
				}))
			}},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

func earlyTrimWayBack() lesson.Step {
	return lesson.Step{
		ID:      "way-back",
		Actions: []lesson.Action{addUnserved(alpha), rewriteAll(), relabel(), remove()},
		Judge:   kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"readable", "lost"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodGet, newVersion, alpha)
				return kit.Choose([]string{"readable", "lost"}, x != nil && x.Status == http.StatusOK, x != nil)
			},
		},
		Checks: inPlace(),
	}
}
