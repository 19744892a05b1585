package webhook

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// fails is what an operation that needs the webhook is answered; shown is for one of which the step shows how it goes.
var (
	fails = lesson.Expect{Refused: true, Status: http.StatusInternalServerError}
	shown = lesson.Expect{Any: true}
)

func outage() lesson.Step {
	const step = "outage"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/webhook-outage", "pitfalls/stuck-deletion"},
		Show:   delta,
		Actions: []lesson.Action{{
			ID: "down", Count: true, // what an earlier change of the CRD has set in motion is over before
			Do:     func(ctx context.Context, env *lesson.Env) error { return kit.SwitchFault(ctx, env, "down") },
			Change: kit.Lines("  the webhook goes down"),
		}, {
			ID:      "read-new",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, newVersion, foxtrot) },
			Kubectl: kit.Kubectl("kubectl get NEW foxtrot"),
			Change:  kit.Lines("  read foxtrot, whose bytes are v1beta1; create india"),
		}, {
			ID: "create",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "create", newVersion)
			},
			Kubectl: kit.FromManifest("kubectl create", step, "create"),
		}, {
			ID:      "read-old",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, newVersion, delta) },
			Kubectl: kit.Kubectl("kubectl get NEW delta"),
			Change:  kit.Lines("  read delta, whose bytes are v1alpha1; list all; patch delta"),
			Expect:  fails,
		}, {
			ID:      "list",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.List(ctx, env, newVersion, false) },
			Kubectl: kit.Kubectl("kubectl get NEW"),
			Expect:  shown,
		}, {
			ID: "patch-old",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Patch(ctx, env, newVersion, delta, `{"spec":{"replicas":9}}`)
			},
			Kubectl: kit.Kubectl(`kubectl patch NEW delta --type=merge -p '{"spec":{"replicas":9}}'`),
			Expect:  shown,
		}, {
			ID: "apply-old",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Apply(ctx, env, step, "team", newVersion, team)
			},
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team"),
			Change:  kit.Lines("  the team applies charlie; delete echo, as a dry run"),
			Expect:  fails,
		}, {
			ID:      "delete-old",
			Do:      deleteEcho,
			Kubectl: kit.Kubectl("kubectl delete NEW echo --dry-run=server"),
			Expect:  fails,
		}, {
			ID: "up",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.SwitchFault(ctx, env, ""); err != nil {
					return err
				}
				return kit.Get(ctx, env, newVersion, echo)
			},
			Change: kit.Lines("  the webhook comes back; read echo, delete india"),
		}, {
			ID:      "tidy",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.RemoveObject(ctx, env, newVersion, india) },
			Kubectl: kit.Kubectl("kubectl delete NEW india"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"refused", "moved", "stays"},
			Answer: func(e lesson.Evidence) (string, error) {
				x, at := e.Sent(http.MethodPatch, newVersion, delta), e.StoredVersion(delta)
				return kit.Choose([]string{"refused", "moved", "stays"}, x != nil && x.Refused(), x != nil && at == newVersion, x != nil && at == oldVersion)
			},
		},
		Checks: []lesson.Check{
			{ID: "new-works", Kind: lesson.Done, Eval: kit.All("foxtrot is read, india created",
				kit.Answered(http.MethodGet, newVersion, foxtrot, 2), kit.Answered(http.MethodPost, newVersion, india, 2))},
			{ID: "old-fails", Kind: lesson.Done, Eval: kit.All("delta is not read, charlie not applied, echo not deleted",
				kit.Answered(http.MethodGet, newVersion, delta, 5), kit.Answered(http.MethodPatch, newVersion, charlie, 5), kit.Answered(http.MethodDelete, newVersion, echo, 5))},
			{ID: "from-cache", Kind: lesson.Done, Eval: fromCache},
			{ID: "patched", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: patched},
			{ID: "healed", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(http.StatusOK, e.Status(echo, newVersion))
			}},
			{ID: "nothing-lost", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(e.Before.Stored.Total, e.After.Stored.Total)
			}},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "still-down", Seen: func(e lesson.Evidence) bool { return e.Status(echo, newVersion) >= 500 }},
			{ID: "left-over", Seen: func(e lesson.Evidence) bool { return e.After.Object(india) != nil }},
		},
	}
}

// deleteEcho asks, by a dry run, whether echo could be deleted.
func deleteEcho(ctx context.Context, env *lesson.Env) error {
	_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodDelete, Path: env.Path(newVersion, echo), Query: url.Values{"dryRun": {"All"}}})
	return err
}

// fromCache checks that the list is answered, and that an object which cannot be read is in it.
func fromCache(e lesson.Evidence) lesson.Outcome {
	const want = "the list is answered, and charlie is in it"
	find := func(e lesson.Evidence) *evidence.Exchange {
		return e.Find(func(x evidence.Exchange) bool { return kit.IsList(e, x, newVersion, "") })
	}
	o := kit.IfCached(want, find)(e)
	if o.Result != lesson.Passed {
		return o
	}
	// What is kept of a long answer is its beginning: charlie is one of the first by name.
	return kit.Holds(strings.Contains(find(e).Response, `"name":"`+charlie+`"`), want, "charlie is not in it")
}

// patched checks that delta came out of the cache, was written at the new version, and lost nothing.
func patched(e lesson.Evidence) lesson.Outcome {
	const want = "delta is patched, and stored at " + newVersion + " with its name"
	o := kit.IfCached(want, func(e lesson.Evidence) *evidence.Exchange { return e.Sent(http.MethodPatch, newVersion, delta) })(e)
	if o.Result != lesson.Passed {
		return o
	}
	was, _ := e.Before.Object(delta).Stored.Field("spec", oldField)
	return kit.Holds(e.StoredVersion(delta) == newVersion && was == e.Bytes(delta, "spec", newField), want,
		"stored at "+e.StoredVersion(delta)+", "+newField+": "+e.Bytes(delta, "spec", newField))
}
