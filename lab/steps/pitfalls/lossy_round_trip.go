package pitfalls

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// LossyRoundTrip is the track of a conversion webhook that drops on the way to the old version what that has no field for: every
// write of an old client comes back without it. A stash in an annotation is the remedy, as far as it goes.
func LossyRoundTrip() *lesson.Track {
	track := pitfall("lossy-round-trip", 8, lossyDrops(), lossyStash(), lossyLimit(), lossyWayBack())
	track.Strategy, track.Needs, track.Mappings = "Webhook", []lesson.Needs{lesson.NeedsWebhook}, dropping
	return track
}

// How the webhook converts, before its next release and after it.
var (
	dropping = lossyMappings(conversion.Drop("spec.tier"))
	stashing = lossyMappings(conversion.Stash("spec.tier"))
)

func lossyMappings(tier conversion.Operation) []conversion.Mapping {
	return []conversion.Mapping{{From: oldVersion, To: newVersion}, {From: newVersion, To: oldVersion, Do: []conversion.Operation{tier}}}
}

func lossyDrops() lesson.Step {
	label := labelAsOldClient("label", "blue")
	label.Count = true
	return lesson.Step{
		ID:      "drop",
		Actions: []lesson.Action{created(), widgets(), switched(), makeGold("gold", alpha, bravo), label},
		Predict: whatIsLeft(),
		Checks: []lesson.Check{
			{ID: "switched", Kind: lesson.Done, Eval: kit.All("served, storage, through a webhook", kit.Strategy("Webhook"), func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("served, storage", kit.Flags(e, newVersion))
			})},
			{ID: "dropped", Kind: lesson.Done, Eval: wasDropped},
			{ID: "accepted", Kind: lesson.Done, Eval: acceptedSilently(oldVersion, alpha)},
			{ID: "label", Kind: lesson.Done, Eval: labelled("blue")},
			{ID: "erased", Kind: lesson.Done, Eval: isErased},
			{ID: "bravo", Kind: lesson.Done, Eval: areGold(bravo)},
		},
	}
}

func lossyStash() lesson.Step {
	return lesson.Step{
		ID: "stash",
		Actions: []lesson.Action{{
			ID:     "release",
			Do:     func(_ context.Context, env *lesson.Env) error { return env.Webhook.Deploy(stashing) },
			Change: kit.Lines("~ the webhook's next release", "  to v1alpha1: spec.tier goes into an annotation, and comes back from it"),
		}, makeGold("gold", alpha), labelAsOldClient("label", "green")},
		Predict: whatIsLeft(),
		Checks: []lesson.Check{
			{ID: "accepted", Kind: lesson.Done, Eval: acceptedSilently(oldVersion, alpha)},
			{ID: "label", Kind: lesson.Done, Eval: labelled("green")},
			{ID: "kept", Kind: lesson.Done, Eval: areGold(alpha)},
			{ID: "stashed", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				_, there := e.After.Object(alpha).View(oldVersion).Field("metadata", "annotations", stashAnnotation)
				return kit.Holds(there, oldVersion+" shows alpha with the annotation "+stashAnnotation, "without it")
			}},
			{ID: "bytes", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected("gold, nothing", e.Bytes(alpha, "spec", "tier")+", "+e.Bytes(alpha, "metadata", "annotations", stashAnnotation))
			}},
		},
	}
}

func lossyLimit() lesson.Step {
	const step = "limit"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "replace",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return replaceAsOldClient(ctx, env, step, "replace")
			},
			Kubectl: kit.FromManifest("kubectl replace --field-manager="+oldClient, step, "replace"),
			Change:  kit.Lines("~ alpha  the whole of it, as the old client has it in its repository"),
		}},
		Predict: whatIsLeft(),
		Checks: []lesson.Check{
			{ID: "accepted", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("alpha is replaced", e.Sent(http.MethodPut, oldVersion, alpha))
			}},
			{ID: "label", Kind: lesson.Done, Eval: labelled("amber")},
			{ID: "erased", Kind: lesson.Done, Eval: isErased},
		},
	}
}

func lossyWayBack() lesson.Step {
	return lesson.Step{
		ID: "way-back",
		Actions: []lesson.Action{makeGold("gold", alpha), rewriteAll(), trim(), relabel(), remove(), kit.DropWebhook(), {
			ID:      "old-client",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, oldVersion, alpha) },
			Kubectl: kit.Kubectl(`kubectl get --raw "` + kit.CollectionURL(oldVersion) + "/" + alpha + `"`),
			Change:  kit.Lines("  read alpha at v1alpha1"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusNotFound},
		}},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"read", "refused"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodGet, oldVersion, alpha)
				return kit.Choose([]string{"read", "refused"}, x != nil && !x.Refused(), x != nil)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "kept", Kind: lesson.Done, Eval: areGold(alpha, bravo)},
			{ID: "strategy", Kind: lesson.Done, Eval: kit.Strategy("None")},
			{ID: "old-client", Kind: lesson.Done, Eval: kit.Answered(http.MethodGet, oldVersion, alpha, http.StatusNotFound)},
		}, inPlace()...),
	}
}

// ── actions and evidence ──

// stashAnnotation is where the webhook keeps what the new version alone has.
const stashAnnotation = conversion.StashPrefix + newVersion

// replaceAsOldClient replaces an object by that of an action's manifest, through the old version: what the manifest does not
// have, the object has no more.
func replaceAsOldClient(ctx context.Context, env *lesson.Env, step, action string) error {
	body, err := kit.Manifest(env, step, action)
	if err != nil {
		return err
	}
	name, raw, err := kit.Parse(string(body))
	if err != nil {
		return err
	}
	now, err := env.Probe().Get(ctx, env.Path(oldVersion, name), nil)
	if err != nil {
		return err
	}
	if err := now.Err(); err != nil {
		return err
	}
	at, _ := kit.ResponseField(&now.Exchange, "metadata", "resourceVersion")
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(object, at, "metadata", "resourceVersion"); err != nil {
		return err
	}
	if raw, err = json.Marshal(object); err != nil {
		return err
	}
	_, err = env.Client.Do(ctx, evidence.Request{Method: http.MethodPut, Path: env.Path(oldVersion, name), ContentType: evidence.JSON,
		Query: url.Values{"fieldManager": {oldClient}}, Body: raw})
	return err
}

// wasDropped checks that the webhook was given alpha with its tier, and answered without.
func wasDropped(e lesson.Evidence) lesson.Outcome {
	const want = "a review of alpha to " + oldVersion + ": gold in the request, no tier in the answer"
	for _, c := range kit.ConversionsTo(e, oldVersion, alpha) {
		was, _ := kit.ReviewedField(c, "spec", "tier")
		if _, there := kit.ConvertedField(c, "spec", "tier"); was == "gold" && !there {
			return lesson.Holds(true, want, want)
		}
	}
	return lesson.Holds(false, want, "there was none")
}
