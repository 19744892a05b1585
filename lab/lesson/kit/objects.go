package kit

import (
	"context"
	"net/http"
	"net/url"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// List reads all objects of a version: whatever the cache has where that is asked for, else the newest, as kubectl does.
func List(ctx context.Context, env *lesson.Env, version string, cached bool) error {
	query := url.Values{"limit": {"500"}}
	if cached {
		query = url.Values{"resourceVersion": {"0"}}
	}
	_, err := env.Client.Get(ctx, env.Path(version, ""), query)
	return err
}

// Patch is a merge patch of an object through a version.
func Patch(ctx context.Context, env *lesson.Env, version, object, body string) error {
	_, err := env.Client.Patch(ctx, env.Path(version, object), evidence.MergePatch, Lab, []byte(body))
	return err
}

// RemoveObject deletes an object; that it is not there is good.
func RemoveObject(ctx context.Context, env *lesson.Env, version, object string) error {
	there, err := env.Probe().Get(ctx, env.Path(version, object), nil)
	if err != nil || there.Status == http.StatusNotFound {
		return err
	}
	_, err = env.Client.Delete(ctx, env.Path(version, object))
	return err
}

// CreateStrictly creates the one object of an action's manifest, and tells the server to refuse fields that it does not know, as
// kubectl does; as a dry run, it only asks. One that is there stays as it is.
func CreateStrictly(ctx context.Context, env *lesson.Env, step, action, version string, dryRun bool) error {
	body, err := Manifest(env, step, action)
	if err != nil {
		return err
	}
	name, raw, err := Parse(string(body))
	if err != nil {
		return err
	}
	query := url.Values{"fieldValidation": {"Strict"}, "fieldManager": {Lab}}
	if dryRun {
		query.Set("dryRun", "All")
	} else if there, err := env.Probe().Get(ctx, env.Path(version, name), nil); err != nil || there.Status == http.StatusOK {
		return err
	}
	_, err = env.Client.Do(ctx, evidence.Request{Method: http.MethodPost, Path: env.Path(version, ""), ContentType: evidence.JSON, Body: raw, Query: query})
	return err
}
