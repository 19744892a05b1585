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
