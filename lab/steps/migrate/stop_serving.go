package migrate

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func stopServing() lesson.Step {
	const step = "stop-serving"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/old-client-write"},
		Actions: []lesson.Action{kit.StopServing(step, "crd", alpha), {
			ID:      "ask-v1alpha1",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, oldVersion, alpha) },
			Kubectl: kit.Kubectl("sleep 1; kubectl get --raw /apis/GROUP/" + oldVersion + "/namespaces/$(kubectl config view --minify -o jsonpath='{..namespace}')/widgets/alpha"),
			Change:  kit.Lines("  GET alpha at v1alpha1"),
			Expect:  lesson.Expect{Refused: true},
		}, {
			ID:      "ask-v1beta1",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, newVersion, alpha) },
			Kubectl: kit.Kubectl("kubectl get NEW alpha"),
			Change:  kit.Lines("  GET alpha at v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"gone", "not-found", "converted"},
			Answer: func(e lesson.Evidence) (string, error) {
				status := e.Status(alpha, oldVersion)
				return kit.Choose([]string{"gone", "not-found", "converted"}, status == http.StatusGone, status == http.StatusNotFound, status == http.StatusOK)
			},
		},
		Checks: []lesson.Check{
			{ID: "flag", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("not served, not storage", kit.Flags(e, oldVersion))
			}},
			{ID: "asked-old", Kind: lesson.Done, Eval: asked(oldVersion, http.StatusNotFound)},
			{ID: "asked-new", Kind: lesson.Done, Eval: asked(newVersion, http.StatusOK)},
			{ID: "views", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				for _, o := range e.After.Objects {
					if e.Status(o.Name, oldVersion) != http.StatusNotFound || e.Status(o.Name, newVersion) != http.StatusOK {
						return lesson.Holds(false, "404 and 200 for every object", o.Name+": not so")
					}
				}
				return lesson.Holds(len(e.After.Objects) > 0, "404 and 200 for every object", "404 and 200 for every object")
			}},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
		Wrong: []lesson.Diagnosis{
			kit.Written(),
			{ID: "nobody-asked", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && !v.Served && asked(oldVersion, http.StatusNotFound)(e).Result == lesson.Failed
			}},
			{ID: "not-asked-new", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && !v.Served && asked(newVersion, http.StatusOK)(e).Result == lesson.Failed
			}},
		},
		Lasts: func(o *evidence.Observation) bool { v := o.Version(oldVersion); return v == nil || !v.Served },
	}
}

// asked checks that somebody asked for alpha at a version, and how the server answered.
func asked(version string, status int) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		got := any("nobody asked")
		for _, x := range e.Exchanges {
			if x.Method == http.MethodGet && x.To(kit.ObjectPath(e, version, alpha)) {
				got = x.Status
			}
		}
		return lesson.Expected(status, got)
	}
}
