package migrate

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func relabelManagedFields() lesson.Step {
	const step = "relabel-managed-fields"
	applyAsTeam := func(action string) func(context.Context, *lesson.Env) error {
		return func(ctx context.Context, env *lesson.Env) error {
			return kit.Apply(ctx, env, step, action, newVersion, team)
		}
	}
	return lesson.Step{
		ID:           step,
		Show:         charlie,
		ShowManagers: true,
		Actions: []lesson.Action{{
			ID:      "team-before",
			Do:      applyAsTeam("team-before"),
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team-before"),
			Change:  kit.Lines("  the team applies charlie at v1beta1, with tier: gold"),
			Expect:  lesson.Expect{Refused: true},
		}, {
			ID: "relabel",
			Do: func(ctx context.Context, env *lesson.Env) (err error) {
				env.Rewrite, err = kit.Rewriter(env).Relabel(ctx, []string{oldVersion}, newVersion)
				return err
			},
			Kubectl: relabelCommands,
			Change:  kit.Lines("- metadata.managedFields[*].apiVersion  v1alpha1", "+ metadata.managedFields[*].apiVersion  v1beta1"),
		}, {
			ID:      "team-after",
			Do:      applyAsTeam("team-after"),
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team-after"),
			Change:  kit.Lines("  the team applies the same once more"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"accepted", "conflict", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				xs := teamApplies(e)
				if len(xs) == 0 {
					return "", lesson.ErrNoAnswer
				}
				first := xs[0]
				return kit.Choose([]string{"accepted", "conflict", "error"}, !first.Refused(), first.Status == http.StatusConflict, first.Status >= 500)
			},
		},
		Checks: []lesson.Check{
			{ID: "refused-before", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "the team's first apply is an error"
				xs := teamApplies(e)
				if len(xs) == 0 {
					return lesson.Holds(false, want, "the team applied nothing")
				}
				return lesson.Holds(xs[0].Status >= 500, want, kit.Answer(xs[0]))
			}},
			{ID: "labels", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				if left := managersAt(e.After, e.Resource.Group+"/"+oldVersion); len(left) > 0 {
					return lesson.Holds(false, "no entry names "+oldVersion, strings.Join(left, ", "))
				}
				return lesson.Holds(len(e.After.Objects) > 0, "no entry names "+oldVersion, "no entry names "+oldVersion)
			}},
			{ID: "applied-after", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				xs := teamApplies(e)
				if len(xs) < 2 {
					return lesson.Holds(false, "the team's second apply is accepted", "the team applied only once")
				}
				last := xs[len(xs)-1]
				return lesson.Holds(last.Status == http.StatusOK, "the team's second apply is accepted", kit.Answer(last))
			}},
			{ID: "owner", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Holds(owns(e.After.Object(charlie), team, "tier"), team+" owns spec.tier of "+charlie, owners(e.After.Object(charlie), "tier"))
			}},
			{ID: "managers", Kind: lesson.Invariant, Eval: kit.SameManagers(func(v string) string {
				return strings.Replace(v, "/"+oldVersion, "/"+newVersion, 1)
			})},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "reset", Seen: func(e lesson.Evidence) bool {
				was, is := e.Before.Object(charlie), e.After.Object(charlie)
				return was != nil && is != nil && len(is.Managers) == 0 && len(was.Managers) > 0
			}},
			{ID: "some-left", Seen: func(e lesson.Evidence) bool {
				n := len(managersAt(e.After, e.Resource.Group+"/"+oldVersion))
				return n > 0 && n < len(managersAt(e.Before, e.Resource.Group+"/"+oldVersion))
			}},
			{ID: "no-before", Seen: func(e lesson.Evidence) bool {
				xs := teamApplies(e)
				relabelled := len(managersAt(e.After, e.Resource.Group+"/"+oldVersion)) == 0
				return len(xs) > 0 && !xs[0].Refused() || len(xs) == 0 && relabelled && e.After.CRD != nil
			}},
		},
		Lasts: func(o *evidence.Observation) bool {
			return o.CRD != nil && len(managersAt(o, strings.TrimPrefix(o.CRD.Name, "widgets.")+"/"+oldVersion)) == 0
		},
	}
}

// relabelCommands make a JSON patch of each object's own entries with a Go template, and send it.
func relabelCommands(env *lesson.Env) []string {
	from, to := env.Resource.Group+"/"+oldVersion, env.Resource.Group+"/"+newVersion
	template := `[{{$c := ""}}{{range $i, $m := .metadata.managedFields}}{{if eq $m.apiVersion "` + from + `"}}{{$c}}` +
		`{"op":"replace","path":"/metadata/managedFields/{{$i}}/apiVersion","value":"` + to + `"}{{$c = ","}}{{end}}{{end}}]`
	return kit.Kubectl(`for w in $(kubectl get NEW -o jsonpath='{.items[*].metadata.name}'); do
  patch=$(kubectl get NEW $w --show-managed-fields -o go-template='` + template + `')
  kubectl patch NEW $w --type=json -p "$patch"
done`)(env)
}

// managersAt names the objects and managers whose entries are at an apiVersion.
func managersAt(o *evidence.Observation, apiVersion string) []string {
	var out []string
	if o == nil {
		return nil
	}
	for _, x := range o.Objects {
		for _, m := range x.Managers {
			if m.APIVersion == apiVersion {
				out = append(out, x.Name+": "+m.Manager)
			}
		}
	}
	return out
}

// owns says whether a manager owns a field of spec.
func owns(o *evidence.Object, manager, field string) bool {
	if o == nil {
		return false
	}
	for _, m := range o.Managers {
		var fields map[string]map[string]any
		if json.Unmarshal(m.Fields, &fields) != nil {
			continue
		}
		if _, there := fields["f:spec"]["f:"+field]; there && m.Manager == manager {
			return true
		}
	}
	return false
}

func owners(o *evidence.Object, field string) string {
	if o != nil {
		for _, m := range o.Managers {
			if owns(o, m.Manager, field) {
				return m.Manager + " owns it"
			}
		}
	}
	return "nobody owns it"
}
