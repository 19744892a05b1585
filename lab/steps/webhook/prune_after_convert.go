package webhook

import (
	"context"
	"net/http"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// undeclared is the field that the fault of that name adds to spec.
const undeclared = "undeclared"

func pruneAfterConvert() lesson.Step {
	return lesson.Step{
		ID:     "prune-after-convert",
		WhatIf: []string{"pitfalls/preserve-unknown-fields"},
		Show:   echo,
		Actions: []lesson.Action{{
			ID: "undeclared",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.WithFault(ctx, env, "undeclared-fields", func() error {
					if err := kit.Get(ctx, env, newVersion, alpha); err != nil {
						return err
					}
					return kit.Patch(ctx, env, newVersion, echo, `{"spec":{"replicas":7}}`)
				})
			},
			Change: kit.Lines("  the webhook adds spec.undeclared", "  GET alpha, and write echo, at v1beta1"),
		},
			readUnder("labels", "changed-labels", bravo, "  the webhook adds a label and an annotation; GET bravo", lesson.Accepted),
			readUnder("finalizers", "changed-finalizers", charlie, "  the webhook adds a finalizer; GET charlie", lesson.Accepted),
			readUnder("name", "changed-name", delta, "  the webhook changes the name; GET delta", lesson.Expect{Refused: true, Status: http.StatusInternalServerError}),
		},
		Predict: &lesson.Prediction{
			Options: []string{"shown", "dropped", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodGet, newVersion, alpha)
				_, shown := kit.ResponseField(x, "spec", undeclared)
				return kit.Choose([]string{"shown", "dropped", "error"}, shown, x != nil && !x.Refused() && !shown, x != nil && x.Refused())
			},
		},
		Checks: []lesson.Check{
			{ID: "answered-with", Kind: lesson.Done, Eval: kit.All("the webhook answered with spec."+undeclared,
				kit.Converted(newVersion, alpha, nil, "spec", undeclared), kit.Converted(oldVersion, echo, nil, "spec", undeclared))},
			{ID: "not-shown", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "alpha is read without it"
				x := e.Sent(http.MethodGet, newVersion, alpha)
				if x == nil || x.Refused() {
					return kit.Holds(false, want, "alpha was not read")
				}
				_, shown := kit.ResponseField(x, "spec", undeclared)
				return kit.Holds(!shown, want, "it is shown")
			}},
			{ID: "not-stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "echo was written, and is stored without it"
				was, is := e.Before.Object(echo), e.After.Object(echo)
				if was == nil || is == nil || was.ResourceVersion == is.ResourceVersion {
					return kit.Holds(false, want, "echo was not written")
				}
				_, stored := is.Stored.Field("spec", undeclared)
				return kit.Holds(!stored, want, "it is stored")
			}},
			{ID: "labels-taken", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "the label and the annotation are shown"
				x := e.Sent(http.MethodGet, newVersion, bravo)
				_, label := kit.ResponseField(x, "metadata", "labels", conversion.AddedName)
				_, note := kit.ResponseField(x, "metadata", "annotations", conversion.AddedName)
				return kit.Holds(label && note, want, "they are not")
			}},
			{ID: "finalizers-ignored", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "charlie is read without the finalizer that the webhook answered with"
				if o := kit.Converted(newVersion, charlie, nil, "metadata", "finalizers")(e); o.Result != lesson.Passed {
					return o
				}
				x := e.Sent(http.MethodGet, newVersion, charlie)
				if x == nil || x.Refused() {
					return kit.Holds(false, want, "charlie was not read")
				}
				_, there := kit.ResponseField(x, "metadata", "finalizers")
				return kit.Holds(!there, want, "it has one")
			}},
			{ID: "name-refused", Kind: lesson.Done, Eval: kit.All("the webhook changed delta's name, and the read is refused",
				kit.Converted(newVersion, delta, "not-"+delta, "metadata", "name"), kit.Answered(http.MethodGet, newVersion, delta, 5))},
			{ID: "healed", Kind: lesson.Invariant, Eval: sameValue},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "by-lab", Seen: func(e lesson.Evidence) bool {
				return len(e.Conversions) == 0 && e.Find(func(evidence.Exchange) bool { return true }) == nil
			}},
		},
	}
}
