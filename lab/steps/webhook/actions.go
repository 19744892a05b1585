package webhook

import (
	"context"
	"net/http"
	"net/url"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// collection is where kubectl finds the objects of a version, for requests that it has no command for.
func collection(version string) string {
	return "/apis/GROUP/" + version + "/namespaces/$(kubectl config view --minify -o jsonpath='{..namespace}')/widgets"
}

// switchFault switches a fault of the webhook on, and tells the CRD where that is in its reference.
func switchFault(ctx context.Context, env *lesson.Env, id string) error {
	fault, err := conversion.FaultByID(id)
	if err != nil {
		return err
	}
	return env.Webhook.Switch(ctx, env.Client, env.Resource, fault)
}

// with does something while the webhook has a fault, and heals it.
func with(ctx context.Context, env *lesson.Env, fault string, do func() error) error {
	if err := switchFault(ctx, env, fault); err != nil {
		return err
	}
	err := do()
	if healed := switchFault(context.WithoutCancel(ctx), env, ""); err == nil {
		err = healed
	}
	return err
}

// readUnder is an action that reads an object at the new version while the webhook has a fault.
func readUnder(id, fault, object, says string, expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			return with(ctx, env, fault, func() error { return kit.Get(ctx, env, newVersion, object) })
		},
		Change: kit.Lines(says),
		Expect: expect,
	}
}

// list reads all objects of a version: whatever the cache has where that is asked for, else the newest, as kubectl does.
func list(ctx context.Context, env *lesson.Env, version string, cached bool) error {
	query := url.Values{"limit": {"500"}}
	if cached {
		query = url.Values{"resourceVersion": {"0"}}
	}
	_, err := env.Client.Get(ctx, env.Path(version, ""), query)
	return err
}

// patch is a merge patch of an object through the new version.
func patch(ctx context.Context, env *lesson.Env, object, body string) error {
	_, err := env.Client.Patch(ctx, env.Path(newVersion, object), evidence.MergePatch, kit.Lab, []byte(body))
	return err
}

// removeObject deletes an object; that it is not there is good.
func removeObject(ctx context.Context, env *lesson.Env, version, object string) error {
	there, err := env.Probe().Get(ctx, env.Path(version, object), nil)
	if err != nil || there.Status == http.StatusNotFound {
		return err
	}
	_, err = env.Client.Delete(ctx, env.Path(version, object))
	return err
}
