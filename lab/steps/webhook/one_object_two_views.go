package webhook

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func oneObjectTwoViews() lesson.Step {
	const step = "one-object-two-views"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/lossy-round-trip"},
		Actions: []lesson.Action{{
			ID: "get-stored", Count: true,
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, oldVersion, alpha) },
			Kubectl: kit.Kubectl("kubectl get OLD alpha -o yaml"),
			Change:  kit.Lines("  GET alpha at v1alpha1, and at v1beta1"),
		}, {
			ID: "get-other", Count: true,
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, newVersion, alpha) },
			Kubectl: kit.Kubectl("kubectl get NEW alpha -o yaml"),
		}, {
			ID: "list-other", Count: true,
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.List(ctx, env, newVersion, false) },
			Kubectl: kit.Kubectl("kubectl get NEW"),
			Change:  kit.Lines("  LIST at v1beta1, as kubectl does, and from the cache"),
		}, {
			ID: "list-cached", Count: true,
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.List(ctx, env, newVersion, true) },
			Kubectl: kit.Kubectl("kubectl get --raw \"" + kit.CollectionURL("NEWVERSION") + "?resourceVersion=0\""),
		}, {
			ID: "create-stored", Count: true,
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "create-stored", oldVersion)
			},
			Kubectl: kit.FromManifest("kubectl create", step, "create-stored"),
			Change:  kit.Lines("  create golf at v1alpha1, hotel at v1beta1"),
		}, {
			ID: "create-other", Count: true,
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "create-other", newVersion)
			},
			Kubectl: kit.FromManifest("kubectl create", step, "create-other"),
		}, {
			ID: "patch-other", Count: true,
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Patch(ctx, env, newVersion, hotel, `{"spec":{"replicas":2}}`)
			},
			Kubectl: kit.Kubectl(`kubectl patch NEW hotel --type=merge -p '{"spec":{"replicas":2}}'`),
			Change:  kit.Lines("  patch hotel at v1beta1, then delete both"),
		}, {
			ID: "delete", Count: true,
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.RemoveObject(ctx, env, oldVersion, hotel) },
			Kubectl: kit.Kubectl("kubectl delete OLD hotel"),
		}, {
			ID:      "tidy",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.RemoveObject(ctx, env, oldVersion, golf) },
			Kubectl: kit.Kubectl("kubectl delete OLD golf"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"one-call", "call-each", "no-call"},
			Answer: func(e lesson.Evidence) (string, error) {
				calls, there := listReviews(e)
				return kit.Choose([]string{"one-call", "call-each", "no-call"}, there && calls == 1, there && calls > 1, there)
			},
		},
		Checks: []lesson.Check{
			{ID: "one-revision", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := e.After.Object(alpha)
				a, b := kit.ResourceVersion(o.View(oldVersion)), kit.ResourceVersion(o.View(newVersion))
				return kit.Holds(a != "" && a == b, "one resourceVersion in both views", oldVersion+": "+kit.OrNone(a)+", "+newVersion+": "+kit.OrNone(b))
			}},
			{ID: "same-value", Kind: lesson.Done, Eval: sameValue},
			{ID: "both-ways", Kind: lesson.Done, Eval: kit.All("reviews to both versions", reviewed(newVersion), reviewed(oldVersion))},
			{ID: "one-each", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "every review held one object"
				for _, c := range e.Conversions {
					if c.Objects != 1 {
						return kit.Holds(false, want, fmt.Sprintf("one held %d", c.Objects))
					}
				}
				return kit.Holds(len(e.Conversions) > 0, want, "there was no review")
			}},
			{ID: "every-operation", Kind: lesson.Done, Eval: kit.All("every operation was answered",
				kit.Answered(http.MethodGet, oldVersion, alpha, 2), kit.Answered(http.MethodGet, newVersion, alpha, 2), listed("limit"), listed("resourceVersion=0"),
				kit.Answered(http.MethodPost, oldVersion, golf, 2), kit.Answered(http.MethodPost, newVersion, hotel, 2), kit.Answered(http.MethodPatch, newVersion, hotel, 2),
				kit.Answered(http.MethodDelete, oldVersion, hotel, 2), kit.Answered(http.MethodDelete, oldVersion, golf, 2))},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
		Wrong: []lesson.Diagnosis{
			kit.Written(),
			{ID: "left-over", Seen: func(e lesson.Evidence) bool {
				return e.After.Object(golf) != nil || e.After.Object(hotel) != nil
			}},
		},
	}
}

// listReviews is how many reviews the list at the new version caused; false where nobody listed. By hand they are not
// counted, and the lab's own reads may be among those that came while the list was answered. So these are the list's only
// where they are enough for all objects, one by one or together.
func listReviews(e lesson.Evidence) (int, bool) {
	if calls, counted := e.Calls["list-other"]; counted {
		return calls, true
	}
	x := e.Find(func(x evidence.Exchange) bool { return kit.IsList(e, x, newVersion, "limit") })
	if x == nil {
		return 0, false
	}
	ended, calls, objects := x.At.Add(time.Duration(x.DurationMS*float64(time.Millisecond))), 0, 0
	for _, c := range kit.ConversionsTo(e, newVersion, "") {
		if !c.At.Before(x.At) && c.At.Before(ended) {
			calls, objects = calls+1, objects+c.Objects
		}
	}
	if objects < e.Before.Stored.Total {
		return 0, true
	}
	return calls, true
}

// listed checks that all objects were listed at the new version, in the way that the query says.
func listed(query string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		want := "a list at " + newVersion + " with " + query
		x := e.Find(func(x evidence.Exchange) bool { return kit.IsList(e, x, newVersion, query) })
		if x == nil {
			return kit.Holds(false, want, "nobody asked")
		}
		return kit.Holds(x.Status == http.StatusOK, want, kit.Answer(*x))
	}
}
