package pitfalls

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// StuckDeletion is the track of a CRD that is deleted while the server cannot read its objects: it can neither go nor come back.
func StuckDeletion() *lesson.Track {
	t := &stuckDeletion{}
	track := pitfall("stuck-deletion", 7, t.trimmed(), t.deleted(), t.hold(), t.wayBack())
	track.Wrong = nil // what is lost here is meant to be
	return track
}

// stuckDeletion has the track's steps, and keeps the objects that were saved: from the CRD's end until it is made anew there is
// no other place for them. The session does one action at a time.
type stuckDeletion struct {
	saved []string // each an object as JSON, ready to be created
}

func (t *stuckDeletion) trimmed() lesson.Step {
	return lesson.Step{
		ID:      "trimmed",
		Actions: []lesson.Action{created(), widgets(), hurry()},
		Predict: &lesson.Prediction{
			Options: []string{"readable", "unreadable"},
			Answer: func(e lesson.Evidence) (string, error) {
				status := e.Status(alpha, newVersion)
				return kit.Choose([]string{"readable", "unreadable"}, status == http.StatusOK, status >= 500)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets}
			})},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
			{ID: "removed", Kind: lesson.Done, Eval: isRemoved},
			{ID: "unreadable", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return lesson.Expected(http.StatusInternalServerError, e.Status(alpha, newVersion))
			}},
		},
	}
}

// hurry switches the storage version, trims and removes, and rewrites nothing.
func hurry() lesson.Action {
	parts := []lesson.Action{switched(), trim(), remove()}
	return lesson.Action{
		ID: "hurry",
		Do: func(ctx context.Context, env *lesson.Env) error {
			crd, err := definition(ctx, env)
			if err != nil || crd == nil || !slices.ContainsFunc(crd.Spec.Versions, isOld) {
				return err // nil where it was removed before
			}
			for _, a := range parts {
				if err := a.Do(ctx, env); err != nil {
					return err
				}
			}
			return nil
		},
		Kubectl: kit.Then(parts[0].Kubectl, parts[1].Kubectl, parts[2].Kubectl),
		Change:  kit.Lines("~ the storage version is v1beta1", "- status.storedVersions  v1alpha1", "- spec.versions[v1alpha1]"),
	}
}

func (t *stuckDeletion) deleted() lesson.Step {
	refusedFoxtrot := makeFoxtrot()
	refusedFoxtrot.Expect = lesson.Expect{Refused: true, Status: http.StatusForbidden}
	return lesson.Step{
		ID: "deleted",
		Actions: []lesson.Action{{
			ID:      "delete",
			Do:      deleteCRD,
			Kubectl: kit.Kubectl("kubectl delete crd CRD --wait=false", "kubectl wait --for=condition=Terminating crd/CRD"),
			Change:  kit.Lines("  DELETE the CRD"),
		}, {
			ID:      "create",
			Do:      createCRD,
			Kubectl: kit.FromManifest("kubectl create", shared, "remove"),
			Change:  kit.Lines("+ the CRD, anew"),
			Expect:  lesson.Expect{Refused: true, Status: http.StatusConflict, Reason: "AlreadyExists"},
		}, refusedFoxtrot, {
			ID:      "apply",
			Do:      func(ctx context.Context, env *lesson.Env) error { return kit.ApplyCRD(ctx, env, shared, "remove") },
			Kubectl: kit.FromManifest("kubectl apply", shared, "remove"),
			Change:  kit.Lines("  apply the CRD once more, as it is"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"gone", "left", "stuck"},
			Answer: func(e lesson.Evidence) (string, error) {
				gone := e.After.CRD == nil
				return kit.Choose([]string{"gone", "left", "stuck"}, gone && e.Total() == 0, gone, isTerminating(e))
			},
		},
		Checks: []lesson.Check{
			{ID: "stuck", Kind: lesson.Done, Eval: deletionFails},
			{ID: "create", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return refused("the CRD cannot be created", e.Find(e.IsNewCRD()))
			}},
			{ID: "foxtrot", Kind: lesson.Done, Eval: kit.Answered(http.MethodPost, newVersion, foxtrot, http.StatusForbidden)},
			{ID: "apply", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("the CRD can be applied", e.Find(func(x evidence.Exchange) bool {
					return x.Method == http.MethodPatch && kit.ChangesCRD(e, x)
				}))
			}},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

func (t *stuckDeletion) hold() lesson.Step {
	const step = "hold"
	return lesson.Step{
		ID: step,
		Actions: []lesson.Action{{
			ID: "hold",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "hold"); err != nil {
					return err
				}
				return kit.Until(ctx, env, env.Path(oldVersion, alpha), kit.Answers(http.StatusOK))
			},
			Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, "hold"), kit.Kubectl("sleep 1")),
			Change:  kit.Lines("~ in one apply: spec.versions[v1alpha1]  served, not storage", "  and spec.conversion.strategy  Webhook, at a Service that is not there"),
		}, {
			ID:      "save",
			Do:      func(ctx context.Context, env *lesson.Env) error { return t.save(ctx, env, env.Client) },
			Kubectl: kit.Kubectl("kubectl get OLD -o yaml | sed '/resourceVersion:/d; s/OLDVERSION/NEWVERSION/' > ~/" + savedFile),
			Change:  kit.Lines("  list the widgets at v1alpha1, and keep the answer"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"goes-on", "stays"},
			Answer: func(e lesson.Evidence) (string, error) {
				return kit.Choose([]string{"goes-on", "stays"}, e.Total() == 0, isTerminating(e))
			},
		},
		Checks: []lesson.Check{
			{ID: "held", Kind: lesson.Done, Eval: kit.All("Webhook, and it still cannot be deleted", kit.Strategy("Webhook"), deletionFails)},
			{ID: "saved", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				return accepted("the widgets are listed at "+oldVersion, e.Listing(oldVersion))
			}},
			{ID: "bytes", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
	}
}

// savedFile is where the commands keep the objects.
const savedFile = "crdlab-widgets.yaml"

func (t *stuckDeletion) wayBack() lesson.Step {
	return lesson.Step{
		ID: "way-back",
		Actions: []lesson.Action{{
			ID:      "free",
			Do:      t.free,
			Kubectl: kit.Then(kit.DropWebhookCommands, kit.Kubectl("kubectl wait --for=delete crd/CRD --timeout=5m")),
			Change:  kit.Lines("~ spec.conversion.strategy  None, and no webhook", "- the CRD, and with it every widget"),
		}, {
			ID:      "crd",
			Do:      createAnew,
			Kubectl: kit.Then(kit.FromManifest("kubectl create", shared, "remove"), kit.Kubectl("kubectl wait --for=condition=Established crd/CRD")),
			Change:  kit.Lines("+ the CRD, with v1beta1 alone"),
		}, {
			ID:      "restore",
			Do:      t.restore,
			Kubectl: kit.Kubectl("kubectl create -f ~/" + savedFile),
			Change:  kit.Lines("+ every widget that was saved, at v1beta1"),
		}},
		Judge: kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"alive", "deleted"},
			Answer: func(e lesson.Evidence) (string, error) {
				there := e.Before.CRD != nil && e.After.CRD != nil
				return kit.Choose([]string{"alive", "deleted"}, there && e.After.CRD.UID == e.Before.CRD.UID, there)
			},
		},
		Checks: append([]lesson.Check{
			{ID: "anew", Kind: lesson.Done, Eval: kit.EveryPair("every object has another uid", func(p kit.Pair) string {
				if p.Is.UID == p.Was.UID {
					return "the same uid"
				}
				return ""
			})},
			{ID: "same", Kind: lesson.Done, Eval: kit.EveryPair("every object has the size and color of before", func(p kit.Pair) string {
				for _, f := range []string{"size", "color"} {
					was, _ := p.Was.View(oldVersion).Field("spec", f)
					is, there := p.Is.View(newVersion).Field("spec", f)
					if was != is {
						return kit.OrNothing(f+": ", is, there)
					}
				}
				return ""
			})},
		}, inPlace()...),
	}
}

// ── actions ──

// deleteCRD deletes the CRD, and waits until the server has tried to delete the objects, and could not.
func deleteCRD(ctx context.Context, env *lesson.Env) error {
	path := evidence.DefinitionPath(env.Resource)
	if _, err := env.Client.Delete(ctx, path); err != nil {
		return err
	}
	return kit.Until(ctx, env, path, func(r *evidence.Response) bool {
		crd, err := evidence.ParseCRD(r.Body)
		return err == nil && crd.Conditions["Terminating"] == failing
	})
}

// createCRD creates the CRD as if there were none.
func createCRD(ctx context.Context, env *lesson.Env) error {
	body, err := kit.Manifest(env, shared, "remove")
	if err != nil {
		return err
	}
	_, raw, err := kit.Parse(string(body))
	if err != nil {
		return err
	}
	_, err = env.Client.Create(ctx, evidence.DefinitionsPath, kit.Lab, raw)
	return err
}

// createAnew creates the CRD once the other one is gone, and waits until it is served.
func createAnew(ctx context.Context, env *lesson.Env) error {
	if crd, err := definition(ctx, env); err != nil || crd != nil {
		return err
	}
	if err := createCRD(ctx, env); err != nil {
		return err
	}
	return kit.Until(ctx, env, env.Path(newVersion, ""), kit.Answers(http.StatusOK))
}

// save keeps every object, ready to be created at the new version: what only the server may set is left out.
func (t *stuckDeletion) save(ctx context.Context, env *lesson.Env, client *evidence.Client) error {
	var saved []string
	err := eachObject(ctx, env, client, oldVersion, func(o *unstructured.Unstructured) error {
		o.SetAPIVersion(env.Resource.Group + "/" + newVersion)
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetManagedFields(nil)
		raw, err := o.MarshalJSON()
		saved = append(saved, string(raw))
		return err
	})
	if err != nil {
		return fmt.Errorf("save the objects: %w", err)
	}
	t.saved = saved
	return nil
}

// tryAgain is how long the server may take before it is reminded of a deletion.
const tryAgain = 500 * time.Millisecond

// free takes out what holds the deletion up, and waits until the CRD is gone. While the objects are held they are saved once more:
// who has done that by hand has them in a file.
func (t *stuckDeletion) free(ctx context.Context, env *lesson.Env) error {
	path, probe := evidence.DefinitionPath(env.Resource), env.Probe().Unrecorded()
	crd, err := definition(ctx, env)
	if err != nil || crd == nil || crd.DeletionTimestamp == nil {
		return err // nil where it went before
	}
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		if err := t.save(ctx, env, probe); err != nil {
			return fmt.Errorf("%w; so the CRD is not let go: go back to the step before, with g", err)
		}
	}
	if err := kit.PatchDefinition(ctx, env, kit.WithoutWebhook); err != nil {
		return err
	}
	// A change of the CRD makes the server try at once; after a failure it pauses, each time twice as long.
	last := time.Now()
	return kit.Until(ctx, env, path, func(r *evidence.Response) bool {
		if r.Status != http.StatusNotFound && time.Since(last) > tryAgain {
			last = time.Now()
			again := fmt.Appendf(nil, `{"metadata":{"annotations":{"crdlab.dev/try-again":%q}}}`, last.Format(time.RFC3339Nano))
			_, _ = probe.Patch(ctx, path, evidence.MergePatch, kit.Lab, again) // it may be gone by now
		}
		return r.Status == http.StatusNotFound
	})
}

// restore creates the objects that were saved, once there is a CRD that takes them.
func (t *stuckDeletion) restore(ctx context.Context, env *lesson.Env) error {
	crd, err := definition(ctx, env)
	if err != nil {
		return err
	}
	if crd == nil || crd.DeletionTimestamp != nil {
		return fmt.Errorf("there is no CRD %s in which the objects could be created, or it is still being deleted: apply the step again", env.Resource)
	}
	return kit.CreateAll(ctx, env, t.saved, newVersion)
}

// definition is the CRD as it is now; nil where there is none.
func definition(ctx context.Context, env *lesson.Env) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := rewrite.Definition(ctx, env.Probe(), env.Resource)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return crd, err
}

// isOld is for slices.ContainsFunc, over spec.versions.
func isOld(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == oldVersion }

// ── evidence ──

// failing is what the CRD's condition Terminating says where the server cannot delete the objects.
const failing = "True InstanceDeletionFailed"

func isTerminating(e lesson.Evidence) bool { return e.After.CRD != nil && e.After.CRD.Terminating }

// deletionFails checks that the CRD is being deleted, and that its objects cannot be.
func deletionFails(e lesson.Evidence) lesson.Outcome {
	if !isTerminating(e) {
		return lesson.Holds(false, failing, "nobody deletes it")
	}
	return lesson.Expected(failing, e.After.CRD.Conditions["Terminating"])
}
