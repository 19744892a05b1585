package pitfalls

import (
	"context"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/verdict"
)

// PreserveUnknownFields is the track of a schema that keeps what it does not know: a misspelled field as well as one that is meant.
// The new version does not keep it, so what nobody has declared is hidden there, and lost with the next write.
func PreserveUnknownFields() *lesson.Track {
	var t preserving
	return pitfall("preserve-unknown-fields", 7, t.kept(), t.twoWindows(), t.turnedOff(), t.wayBack())
}

// preserving has the track's steps. Two fields are in no schema: spec.owner of alpha, delta and echo, which is meant, and bravo's
// spec.colour, which is misspelled.
type preserving struct{}

// The steps of preserve-unknown-fields that have manifests.
const (
	preserveKept       = "kept"
	preserveTwoWindows = "two-windows"
	preserveOff        = "turned-off"
	preserveWayBack    = "way-back"
)

func (preserving) kept() lesson.Step {
	return lesson.Step{
		ID:   preserveKept,
		Show: bravo,
		Actions: []lesson.Action{
			kit.CreateCRD(preserveKept, "crd"),
			widgetsOf(preserveKept, "+ charlie; alpha, delta, echo with an owner"),
			{
				ID: "typo",
				Do: func(ctx context.Context, env *lesson.Env) error {
					return kit.CreateStrictly(ctx, env, preserveKept, "typo", oldVersion, false)
				},
				Kubectl: kit.FromManifest("kubectl create", preserveKept, "typo"), // strict is kubectl's default
				Change:  kit.Lines("+ bravo  with spec.colour, strict validation"),
			},
		},
		Predict: &lesson.Prediction{
			Options: []string{"refused", "warned", "taken"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodPost, oldVersion, bravo)
				return kit.Choose([]string{"refused", "warned", "taken"}, x != nil && x.Refused(), x != nil && len(x.Warnings) > 0, x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets}
			})},
			{ID: "typo", Kind: lesson.Done, Eval: takenStrictly},
			{ID: "kept", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: bytesHave(bravo, "colour")},
			{ID: "owner", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: bytesHave(alpha, "owner")},
		},
	}
}

func (preserving) twoWindows() lesson.Step {
	return lesson.Step{
		ID:   preserveTwoWindows,
		Show: delta,
		Actions: []lesson.Action{bothServedBy(preserveTwoWindows), {
			ID: "typo",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.CreateStrictly(ctx, env, preserveTwoWindows, "typo", newVersion, true)
			},
			Kubectl: kit.FromManifest("kubectl create --dry-run=server", preserveTwoWindows, "typo"),
			Change:  kit.Lines("  foxtrot with spec.colour at v1beta1, strict validation, as a dry run"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusBadRequest},
		}, patch("write", newVersion, delta, repaint, lesson.Accepted)},
		Predict: &lesson.Prediction{
			Options: []string{"kept", "lost"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Sent(http.MethodPatch, newVersion, delta)
				_, there := e.After.Object(delta).View(oldVersion).Field("spec", "owner")
				return kit.Choose([]string{"kept", "lost"}, x != nil && there, x != nil && e.Status(delta, oldVersion) == http.StatusOK)
			},
		},
		Checks: []lesson.Check{
			{ID: "hidden", Kind: lesson.Done, Eval: kit.All("alpha's owner is shown at "+oldVersion+" alone",
				viewHas(alpha, oldVersion, "owner"), viewLacks(alpha, newVersion, "owner"))},
			{ID: "strict", Kind: lesson.Done, Eval: kit.Answered(http.MethodPost, newVersion, foxtrot, http.StatusBadRequest)},
			{ID: "written", Kind: lesson.Done, Eval: kit.Answered(http.MethodPatch, newVersion, delta, http.StatusOK)},
			{ID: "lost", Kind: lesson.Done, Eval: viewLacks(delta, oldVersion, "owner")},
			{ID: "stored", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Before.Stored.Total}
			})},
		},
	}
}

func (preserving) turnedOff() lesson.Step {
	return lesson.Step{
		ID: preserveOff,
		Actions: []lesson.Action{{
			ID: "off",
			Do: func(ctx context.Context, env *lesson.Env) error {
				return kit.Replacing(ctx, env, oldVersion, func() error { return kit.ApplyCRD(ctx, env, preserveOff, "off") })
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", preserveOff, "off"), kit.Kubectl("sleep 2")),
			Change:  kit.Lines("- v1alpha1: spec  x-kubernetes-preserve-unknown-fields"),
		}, patch("write", oldVersion, echo, "{}", lesson.Accepted)},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"shown", "hidden", "lost"},
			Answer: func(e lesson.Evidence) (string, error) {
				_, shown := e.After.Object(alpha).View(oldVersion).Field("spec", "owner")
				stored := bytesHave(alpha, "owner")(e).Result == lesson.Passed
				return kit.Choose([]string{"shown", "hidden", "lost"}, shown, stored, e.After.Stored.Access)
			},
		},
		Checks: []lesson.Check{
			{ID: "hidden", Kind: lesson.Done, Eval: viewLacks(alpha, oldVersion, "owner")},
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: bytesHave(alpha, "owner")},
			{ID: "written", Kind: lesson.Done, Eval: kit.Answered(http.MethodPatch, oldVersion, echo, http.StatusOK)},
			{ID: "lost", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: bytesLack(echo, "owner")},
			{ID: "found", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.Finding(verdict.RoundTrip, verdict.Fail)},
		},
	}
}

func (preserving) wayBack() lesson.Step {
	const correct = `{"spec":{"color":"green","colour":null}}`
	return lesson.Step{
		ID: preserveWayBack,
		Actions: []lesson.Action{{
			ID:      "declare",
			Do:      kit.SwitchStorage(preserveWayBack, "declare").Do,
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", preserveWayBack, "declare"), kit.Kubectl("sleep 1")),
			Change:  kit.Lines("+ v1alpha1: spec  x-kubernetes-preserve-unknown-fields", "+ v1beta1: spec.owner  declared", "+ spec.versions[v1beta1].storage   true"),
		},
			mend(oldVersion, []merge{{bravo, correct}, {delta, `{"spec":{"owner":"team-b"}}`}, {echo, `{"spec":{"owner":"team-a"}}`}},
				"~ bravo's spec.colour is its color", "+ spec.owner of delta and echo"),
			rewriteAll(), trim(), relabel(), removedBy(preserveWayBack)},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"back", "lost"},
			Answer: func(e lesson.Evidence) (string, error) {
				_, back := e.After.Object(alpha).View(newVersion).Field("spec", "owner")
				return kit.Choose([]string{"back", "lost"}, back, e.Status(alpha, newVersion) == http.StatusOK)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "owner", Kind: lesson.Done, Eval: viewHas(alpha, newVersion, "owner")},
			{ID: "mended", Kind: lesson.Done, Eval: kit.All("what was misspelled or lost is there", viewHas(bravo, newVersion, "color"),
				viewHas(delta, newVersion, "owner"), viewHas(echo, newVersion, "owner"))},
		}, inPlace()...),
	}
}

// takenStrictly checks that bravo was created by a request for strict validation, and nothing was said to its unknown field.
func takenStrictly(e lesson.Evidence) lesson.Outcome {
	const want = "created with strict validation, without a warning"
	x := e.Find(func(x evidence.Exchange) bool {
		return e.About(http.MethodPost, oldVersion, bravo)(x) && strings.Contains(x.Path, "fieldValidation=Strict")
	})
	if x == nil {
		return lesson.Holds(false, want, "nobody asked for it")
	}
	return kit.Holds(x.Status == http.StatusCreated && len(x.Warnings) == 0, want, kit.Answer(*x)+" "+strings.Join(x.Warnings, " "))
}

// bytesHave checks that an object's bytes have a field under spec.
func bytesHave(object, field string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		value := e.Bytes(object, "spec", field)
		return lesson.Holds(value != lesson.Nothing, "spec."+field+" in the bytes of "+object, value)
	}
}

// bytesLack checks that an object's bytes, which are known, have no such field under spec.
func bytesLack(object, field string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		value := e.Bytes(object, "spec", field)
		return lesson.Holds(e.StoredVersion(object) != "" && value == lesson.Nothing, "no spec."+field+" in the bytes of "+object, value)
	}
}

// viewHas checks that an object is shown with a field under spec, at a version.
func viewHas(object, version, field string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		value := e.Value(object, version, "spec", field)
		return lesson.Holds(value != lesson.Nothing, object+" at "+version+" with spec."+field, value)
	}
}

// viewLacks checks that an object can be read at a version, and has no such field under spec there.
func viewLacks(object, version, field string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		value := e.Value(object, version, "spec", field)
		return lesson.Holds(e.Status(object, version) == http.StatusOK && value == lesson.Nothing, object+" at "+version+" without spec."+field, value)
	}
}
