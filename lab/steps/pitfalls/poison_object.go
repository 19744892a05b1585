package pitfalls

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// PoisonObject is the track of one object that the conversion webhook cannot convert: it takes the list of all with it.
func PoisonObject() *lesson.Track {
	track := withWebhook(pitfall("poison-object", 6, poisonServed(), poisonFound(), poisonWayBack()), []conversion.Mapping{
		{From: oldVersion, To: newVersion, Do: []conversion.Operation{conversion.Number("spec.replicas")}},
		{From: newVersion, To: oldVersion, Do: []conversion.Operation{conversion.Text("spec.replicas")}},
	})
	track.Subject = poison
	return track
}

func poisonServed() lesson.Step {
	const step = "served"
	fails := lesson.Expect{Refused: true}
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{kit.CreateCRD(step, "crd"), widgetsOf(step, "+ the widgets  at v1alpha1"), {
			ID: "both", Count: true, // the server has tried to load its cache before anybody watches
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "both"); err != nil {
					return err
				}
				return kit.Until(ctx, env, env.Path(newVersion, alpha), kit.Answers(http.StatusOK))
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, "both"), kit.Kubectl("sleep 1")),
			Change:  kit.Lines("+ spec.versions[v1beta1]  served, not storage", "~ spec.conversion.strategy  Webhook"),
		},
			get("other", newVersion, alpha, lesson.Accepted),
			list("list", newVersion, fails),
			watch(fails),
		},
		Predict: &lesson.Prediction{
			Options: []string{"others", "all", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Listing(newVersion)
				return kit.Choose([]string{"error", "all", "others"}, x != nil && x.Refused(), x != nil && e.Status(poison, newVersion) == http.StatusOK, x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets}
			})},
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("Webhook")},
			{ID: "other", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, newVersion, alpha, http.StatusOK)},
			{ID: "list", Kind: lesson.Done, Eval: listRefused},
			{ID: "watch", Kind: lesson.Done, Eval: watchRefused},
		},
	}
}

func poisonFound() lesson.Step {
	return lesson.Step{
		ID: "found",
		Actions: []lesson.Action{list("list", oldVersion, lesson.Accepted), {
			ID: "ask",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return eachObject(ctx, env, env.Probe(), oldVersion, func(o *unstructured.Unstructured) error {
					return kit.Get(ctx, env, newVersion, o.GetName())
				})
			},
			Kubectl: kit.Kubectl(`for w in $(kubectl get OLD -o jsonpath='{.items[*].metadata.name}'); do kubectl get NEW $w >/dev/null || echo "$w is the one"; done`),
			Change:  kit.Lines("  read each widget at v1beta1"),
			Expect:  lesson.Expect{Any: true}, // one of them is refused
		}},
		Predict: &lesson.Prediction{
			Options: []string{"answered", "error"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Listing(oldVersion)
				return kit.Choose([]string{"error", "answered"}, x != nil && x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "list", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("the widgets are listed at "+oldVersion, e.Listing(oldVersion))
			}},
			{ID: "one", Kind: lesson.Done, Eval: kit.All(poison+" alone is refused",
				kit.Answered(http.MethodGet, newVersion, poison, http.StatusInternalServerError),
				kit.Answered(http.MethodGet, newVersion, alpha, http.StatusOK), kit.Answered(http.MethodGet, newVersion, bravo, http.StatusOK),
				kit.Answered(http.MethodGet, newVersion, delta, http.StatusOK), kit.Answered(http.MethodGet, newVersion, echo, http.StatusOK))},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

func poisonWayBack() lesson.Step {
	const step = "way-back"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{
			patch("mend", oldVersion, poison, `{"spec":{"replicas":"3"}}`, lesson.Accepted),
			switchedBy(step, "+ spec.versions[v1beta1].storage   true"), rewriteAll(), relabel(), trim(),
			removedBy(step, `{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}`),
		},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"taken", "refused"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodPatch, oldVersion, poison)
				return kit.Choose([]string{"refused", "taken"}, x != nil && x.Refused(), x != nil)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "mended", Kind: lesson.Done, Eval: kit.Answered(http.MethodPatch, oldVersion, poison, http.StatusOK)},
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("None")},
		}, inPlace()...),
	}
}
