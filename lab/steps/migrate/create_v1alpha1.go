package migrate

import (
	"context"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// The field of bravo that the schema does not know.
const unknownField = "weight"

func createOld() lesson.Step {
	const step = "create-v1alpha1"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/preserve-unknown-fields"},
		Show:   bravo,
		Actions: []lesson.Action{kit.CreateCRD(step, "crd"), {
			ID: "widgets",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "widgets", oldVersion)
			},
			Kubectl: kit.FromManifest("kubectl apply", step, "widgets"),
			Change:  kit.Lines("+ alpha, delta, echo  at v1alpha1"),
		}, {
			ID: "strict",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.CreateStrictly(ctx, env, step, "unknown-field", oldVersion, true)
			},
			Kubectl: kit.FromManifest("kubectl apply --dry-run=server", step, "unknown-field"), // strict is kubectl's default
			Change:  kit.Lines("  bravo, with strict validation, as a dry run"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusBadRequest},
		}, {
			ID: "unknown-field",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Create(ctx, env, step, "unknown-field", oldVersion)
			},
			// kubectl itself refuses unknown fields unless it is told to leave that to the server
			Kubectl: kit.FromManifest("kubectl apply --validate=warn", step, "unknown-field"),
			Change:  kit.Lines("+ bravo  with spec.weight, which the schema lacks"),
		}, {
			ID: "team",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Apply(ctx, env, step, "team", oldVersion, team)
			},
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team"),
			Change:  kit.Lines("+ charlie  applied by the manager team"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"refused", "kept", "pruned"},
			Answer: func(e lesson.Evidence) (string, error) {
				sent := bravoSent(e)
				_, kept := e.After.Object(bravo).View(oldVersion).Field("spec", unknownField)
				return kit.Choose([]string{"refused", "kept", "pruned"}, sent != nil && sent.Refused(), sent != nil && kept, sent != nil && !kept)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.Begun(oldVersion, named[:lesson.MinWidgets]...)},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion)},
			{ID: "strict", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "refused where strict validation is asked for"
				x := strictBravo(e)
				if x == nil {
					return lesson.Holds(false, want, "nobody asked for it")
				}
				return lesson.Holds(x.Refused(), want, kit.Answer(*x))
			}},
			{ID: "pruned", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: pruned},
			{ID: "team", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				want := team + " (Apply) " + e.Resource.Group + "/" + oldVersion
				got := kit.Managers(e.After.Object(charlie), kit.AsItIs)
				for _, m := range got {
					if m == want {
						return lesson.Holds(true, want, m)
					}
				}
				return lesson.Holds(false, want, kit.OrNobody(got))
			}},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "no-crd", Seen: func(e lesson.Evidence) bool { return e.After.CRD == nil }},
			{ID: "too-early", Seen: func(e lesson.Evidence) bool { return e.After.Version(newVersion) != nil }},
			{ID: "too-many", Seen: func(e lesson.Evidence) bool { return e.Total() > e.Widgets }},
			kit.Misnamed(named[:lesson.MinWidgets]...),
			{ID: "not-the-team", Seen: func(e lesson.Evidence) bool {
				return e.After.Object(charlie) != nil && !strings.Contains(kit.OrNobody(kit.Managers(e.After.Object(charlie), kit.AsItIs)), team+" (Apply)")
			}},
			{ID: "never-sent", Seen: func(e lesson.Evidence) bool { return e.After.Object(bravo) != nil && bravoSent(e) == nil }},
			{ID: "not-strict", Seen: func(e lesson.Evidence) bool { return e.After.Object(bravo) != nil && strictBravo(e) == nil }},
		},
	}
}

// strictly is what a client adds to a request that is to be refused for a field which the schema does not know.
const strictly = "fieldValidation=Strict"

// sentBravo says whether an exchange sent bravo, with the field that the schema does not know.
func sentBravo(e lesson.Evidence, x evidence.Exchange) bool {
	return (x.Method == http.MethodPost || x.Method == http.MethodPatch) && strings.Contains(x.Path+x.Body, bravo) &&
		strings.Contains(x.Body, unknownField) && kit.At(e, x, oldVersion)
}

// strictBravo is the request that asked for strict validation of bravo.
func strictBravo(e lesson.Evidence) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool { return sentBravo(e, x) && strings.Contains(x.Path, strictly) })
}

// bravoSent is the request that made bravo.
func bravoSent(e lesson.Evidence) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool { return sentBravo(e, x) && !x.DryRun() })
}

// pruned checks that the field was sent, and is neither shown nor stored.
func pruned(e lesson.Evidence) lesson.Outcome {
	const want = "sent, and neither shown nor stored"
	o := e.After.Object(bravo)
	_, shown := o.View(oldVersion).Field("spec", unknownField)
	stored := false
	if o != nil {
		_, stored = o.Stored.Field("spec", unknownField)
	}
	switch {
	case o == nil:
		return lesson.Holds(false, want, "there is no "+bravo)
	case bravoSent(e) == nil:
		return lesson.Holds(false, want, "never sent")
	case shown || stored:
		return lesson.Holds(false, want, "kept")
	}
	return lesson.Holds(true, want, want)
}
