package pitfalls

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// WebhookOutage is the track of a conversion webhook that dies half-way through a migration: who cannot work without it, who can,
// and how the migration is brought to its end without it.
func WebhookOutage() *lesson.Track {
	return withWebhook(pitfall("webhook-outage", 8, outageHalfWay(), outageDown(), outageCure(), outageWayBack()),
		conversion.Renames(oldVersion, newVersion, "spec."+label, displayName))
}

// What each version calls the one field whose name changes.
const (
	label       = "label"
	displayName = "displayName"
)

func outageHalfWay() lesson.Step {
	const step = "half-way"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{kit.CreateCRD(step, "crd"), widgetsOf(step, "+ the widgets  at v1alpha1"), {
			ID: "team",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Apply(ctx, env, step, "team", oldVersion, team)
			},
			Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team"),
			Change:  kit.Lines("+ charlie  applied by the manager team"),
		}, switchedBy(step, "+ spec.versions[v1beta1].storage   true"), makeFoxtrotBy(step)},
		Predict: &lesson.Prediction{
			Options: []string{"moved", "stayed"},
			Answer: func(e lesson.Evidence) (string, error) {
				at := e.StoredVersion(alpha)
				return kit.Choose([]string{"moved", "stayed"}, at == newVersion, at == oldVersion)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets, newVersion: 1}
			})},
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("Webhook")},
		},
	}
}

func outageDown() lesson.Step {
	const step = "down"
	fails := lesson.Expect{Refused: true, Status: http.StatusInternalServerError}
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "down", Count: true, // what an earlier change of the CRD has set in motion is over before
			Do:     func(ctx context.Context, env *lesson.Env) error { return kit.SwitchFault(ctx, env, "down") },
			Change: kit.Lines("  the webhook goes down, and stays down"),
		},
			get("read-new", newVersion, foxtrot, lesson.Accepted),
			patch("write-new", newVersion, foxtrot, `{"spec":{"replicas":7}}`, lesson.Accepted),
			get("read-old", newVersion, alpha, fails),
			{
				ID: "apply",
				Do: func(ctx context.Context, env *lesson.Env) error {
					return kit.Apply(ctx, env, step, "team", newVersion, team)
				},
				Kubectl: kit.FromManifest("kubectl apply --server-side --field-manager="+team, step, "team"),
				Change:  kit.Lines("  the team applies charlie at v1beta1"),
				Expect:  fails,
			}, {
				ID: "delete-all",
				Do: func(ctx context.Context, env *lesson.Env) error {
					_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodDelete, Path: env.Path(newVersion, ""), Query: url.Values{"dryRun": {"All"}}})
					return err
				},
				Kubectl: kit.Kubectl(`kubectl delete --raw "` + kit.CollectionURL("NEWVERSION") + `?dryRun=All"`),
				Change:  kit.Lines("  DELETE the collection of widgets, as a dry run"),
				Expect:  fails,
			},
			list("list", newVersion, lesson.Expect{Any: true}), // a server that has just begun has nothing in its cache
			get("read-old-client", oldVersion, alpha, lesson.Accepted),
			patch("write-old-client", oldVersion, alpha, `{"spec":{"replicas":7}}`, fails),
		},
		Predict: &lesson.Prediction{
			Options: []string{"both", "client", "neither"},
			Answer: func(e lesson.Evidence) (string, error) {
				apply, read := e.Sent(http.MethodPatch, newVersion, charlie), e.Sent(http.MethodGet, oldVersion, alpha)
				asked := apply != nil && read != nil
				return kit.Choose([]string{"both", "client", "neither"}, asked && !apply.Refused() && !read.Refused(),
					asked && !read.Refused(), asked && apply.Refused())
			},
		},
		Checks: []lesson.Check{
			{ID: "works", Kind: lesson.Done, Eval: kit.All("foxtrot is read and patched at "+newVersion,
				kit.Answered(http.MethodGet, newVersion, foxtrot, 2), kit.Answered(http.MethodPatch, newVersion, foxtrot, 2))},
			{ID: "fails", Kind: lesson.Done, Eval: kit.All("alpha is not read, charlie not applied",
				kit.Answered(http.MethodGet, newVersion, alpha, 5), kit.Answered(http.MethodPatch, newVersion, charlie, 5))},
			{ID: "delete", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return refused("a DELETE of the collection is refused", deletesAll(e))
			}},
			{ID: "list", Kind: lesson.Done, Eval: kit.IfCached("the list is answered", func(e lesson.Evidence) *evidence.Exchange { return e.Listing(newVersion) })},
			{ID: "client", Kind: lesson.Done, Eval: kit.All("alpha is read at "+oldVersion+", and not patched",
				kit.Answered(http.MethodGet, oldVersion, alpha, 2), kit.Answered(http.MethodPatch, oldVersion, alpha, 5))},
		},
	}
}

// deletesAll is the first attempt to delete all objects at once; nil where there was none.
func deletesAll(e lesson.Evidence) *evidence.Exchange {
	path := evidence.CollectionPath(e.Resource, newVersion, e.Namespace)
	return e.Find(func(x evidence.Exchange) bool { return x.Method == http.MethodDelete && x.To(path) })
}

func outageCure() lesson.Step {
	const step = "cure"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "none",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "none"); err != nil {
					return err
				}
				return kit.Until(ctx, env, env.Path(newVersion, alpha), kit.Answers(http.StatusOK))
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, "none"), kit.Kubectl("sleep 1")),
			Change: kit.Lines("~ spec.conversion.strategy  None, and no webhook", "- spec.versions[v1alpha1].served  true",
				"+ spec.label in the schema of v1beta1, beside spec.displayName"),
		},
			get("look", newVersion, alpha, lesson.Accepted),
			{
				ID: "convert",
				Do: convertByHand,
				Kubectl: kit.Kubectl(`for w in $(kubectl get NEW -o go-template='{{range .items}}{{if .spec.` + label + `}}{{.metadata.name}} {{end}}{{end}}'); do
  kubectl patch NEW $w --type=json -p '` + renameLabel + `'
done`),
				Change: kit.Lines("~ spec.label of every widget  becomes spec.displayName"),
			}},
		Predict: &lesson.Prediction{
			Options: []string{label, displayName, "neither"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodGet, newVersion, alpha)
				_, old := kit.ResponseField(x, "spec", label)
				_, renamed := kit.ResponseField(x, "spec", displayName)
				return kit.Choose([]string{label, displayName, "neither"}, old, renamed, x != nil && !x.Refused())
			},
		},
		Checks: []lesson.Check{
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("None")},
			{ID: "look", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, alpha, http.StatusOK)},
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{newVersion: e.Before.Stored.Total}
			})},
			{ID: "renamed", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.EveryPair("the bytes have as "+displayName+" what they had as "+label, func(p kit.Pair) string {
				was, old := p.Was.Stored.Field("spec", label)
				if !old {
					was, _ = p.Was.Stored.Field("spec", displayName)
				}
				is, there := p.Is.Stored.Field("spec", displayName)
				if _, left := p.Is.Stored.Field("spec", label); left || was != is {
					return kit.OrNothing(displayName+": ", is, there)
				}
				return ""
			})},
		},
	}
}

// renameLabel is what the webhook would do, as a JSON patch.
const renameLabel = `[{"op":"move","from":"/spec/` + label + `","path":"/spec/` + displayName + `"}]`

// convertByHand does for every object that still has the field's old name what the webhook would do.
func convertByHand(ctx context.Context, env *lesson.Env) error {
	return eachObject(ctx, env, env.Probe(), newVersion, func(o *unstructured.Unstructured) error {
		if _, there, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", label); !there {
			return nil
		}
		_, err := env.Client.Patch(ctx, env.Path(newVersion, o.GetName()), evidence.JSONPatch, kit.Lab, []byte(renameLabel))
		return err
	})
}

func outageWayBack() lesson.Step {
	const step = "way-back"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{relabel(), trim(),
			removedBy(step, `{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/`+label+`"}`)},
		Judge:   kit.Judge,
		Predict: kit.WhichVerdict(),
		Checks:  inPlace(),
	}
}
