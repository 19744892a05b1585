package webhook

import (
	"context"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func rewriteObjects() lesson.Step {
	return lesson.Step{
		ID:           "rewrite",
		WhatIf:       []string{"pitfalls/poison-object", "pitfalls/large-rewrite", "pitfalls/flip-back"},
		Show:         charlie,
		ShowManagers: true,
		Actions: []lesson.Action{{
			ID: "rewrite", Count: true,
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, newVersion)
				return err
			},
			Kubectl: kit.RewriteCommands("NEW"),
			Change:  kit.Lines("~ every widget still stored at v1alpha1: a merge patch {} at v1beta1"),
		}, {
			ID: "relabel", Count: true,
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				_, err = kit.Rewriter(env).Relabel(ctx, []string{oldVersion}, newVersion)
				return err
			},
			Kubectl: kit.RelabelCommands,
			Change:  kit.Lines("- metadata.managedFields[*].apiVersion  v1alpha1", "+ metadata.managedFields[*].apiVersion  v1beta1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"renamed", "kept", "gone"},
			Answer: func(e lesson.Evidence) (string, error) {
				o := e.After.Object(charlie)
				return kit.Choose([]string{"renamed", "kept", "gone"}, kit.Owns(o, team, newField), kit.Owns(o, team, oldField), o != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{newVersion: e.Before.Stored.Total}
			})},
			{ID: "renamed", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = newField + " in the bytes of every object"
				for _, o := range e.After.Objects {
					if _, there := o.Stored.Field("spec", newField); !there {
						return kit.Holds(false, want, o.Name+" has none")
					}
				}
				return kit.Holds(len(e.After.Objects) > 0, want, want)
			}},
			{ID: "labels", Kind: lesson.Done, Eval: kit.NoEntryNames(oldVersion)},
			{ID: "same-value", Kind: lesson.Invariant, Eval: kit.EveryPair("the same "+newField+" as before", func(p kit.Pair) string {
				was, _ := p.Was.View(newVersion).Field("spec", newField)
				is, there := p.Is.View(newVersion).Field("spec", newField)
				if !there || was != is {
					return kit.OrNothing("now ", is, there)
				}
				return ""
			})},
			{ID: "owner", Kind: lesson.Invariant, Eval: func(e lesson.Evidence) lesson.Outcome {
				o := e.After.Object(charlie)
				return kit.Holds(kit.Owns(o, team, oldField) && !kit.Owns(o, team, newField), "the team's entry names "+oldField+", and not "+newField,
					kit.Owners(o, newField))
			}},
			{ID: "record", Kind: lesson.Invariant, Eval: func(e lesson.Evidence) lesson.Outcome {
				return kit.Holds(slices.Equal(e.Before.StoredVersions(), e.After.StoredVersions()), "storedVersions as before", strings.Join(e.After.StoredVersions(), " "))
			}},
		},
		Wrong: []lesson.Diagnosis{
			kit.MadeAnew(),
			kit.More(),
			{ID: "some-left", Seen: func(e lesson.Evidence) bool { return e.StoredAt(oldVersion) > 0 }},
			{ID: "not-relabelled", Seen: func(e lesson.Evidence) bool {
				return e.StoredAt(oldVersion) == 0 && len(kit.ManagersAt(e.After, e.Resource.Group+"/"+oldVersion)) > 0
			}},
		},
		Lasts: func(o *evidence.Observation) bool { return o.Stored.ByVersion[oldVersion] == 0 },
	}
}
