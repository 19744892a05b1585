package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/manifests"
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

// Each reads all objects of a version, page by page, as a probe, and calls do for each of them. It returns the resourceVersion
// from which a watch goes on.
func Each(ctx context.Context, env *lesson.Env, version string, do func(name string, object *evidence.View)) (string, error) {
	query := url.Values{"limit": {"500"}} // a list without a limit may be refused for a moment after a change of the CRD
	for {
		r, err := env.Probe().Unrecorded().Get(ctx, env.Path(version, ""), query)
		if err != nil {
			return "", err
		}
		if err := r.Err(); err != nil {
			return "", fmt.Errorf("list %s at %s: %w", env.Resource, version, err)
		}
		var page struct {
			Metadata metav1.ListMeta
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(r.Body, &page); err != nil {
			return "", fmt.Errorf("read the list of %s at %s: %w", env.Resource, version, err)
		}
		for _, item := range page.Items {
			view := &evidence.View{Status: http.StatusOK, Object: item}
			name, _ := view.Field("metadata", "name")
			do(fmt.Sprint(name), view)
		}
		if page.Metadata.Continue == "" {
			return page.Metadata.ResourceVersion, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// PatchEach sends a merge patch through a version to every object for which patch makes one, many at a time.
func PatchEach(ctx context.Context, env *lesson.Env, version string, patch func(object *evidence.View) string) error {
	var names []string
	bodies := map[string]string{}
	_, err := Each(ctx, env, version, func(name string, object *evidence.View) {
		if body := patch(object); body != "" {
			names, bodies[name] = append(names, name), body
		}
	})
	if err != nil {
		return err
	}
	return each(ctx, names, func(ctx context.Context, name string) error { return Patch(ctx, env, version, name, bodies[name]) })
}

// Restore merges the objects of an action's manifest, a backup, into those that are there.
func Restore(ctx context.Context, env *lesson.Env, step, action, version string) error {
	body, err := Manifest(env, step, action)
	if err != nil {
		return err
	}
	return each(ctx, manifests.Split(body), func(ctx context.Context, doc string) error {
		name, raw, err := Parse(doc)
		if err != nil {
			return err
		}
		return Patch(ctx, env, version, name, string(raw))
	})
}
