package kit

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// Migration is the StorageVersionMigration of a manifest, as JSON.
func Migration(env *lesson.Env, step, action string) ([]byte, error) {
	body, err := Manifest(env, step, action)
	if err != nil {
		return nil, err
	}
	_, raw, err := Parse(string(body))
	return raw, err
}

// Migrate has the cluster rewrite the track's objects, by the StorageVersionMigration of a manifest, and follows it to its end.
func Migrate(ctx context.Context, env *lesson.Env, step, action, target string) (err error) {
	raw, err := Migration(env, step, action)
	if err != nil {
		return err
	}
	env.Rewrite, err = Rewriter(env).Migrate(ctx, target, raw)
	return err
}

// AskCRD asks by a dry run what the server says to the CRD of an action's manifest.
func AskCRD(ctx context.Context, env *lesson.Env, step, action string) error {
	body, err := Manifest(env, step, action)
	if err != nil {
		return err
	}
	_, err = env.Client.Do(ctx, evidence.Request{Method: http.MethodPatch, Path: evidence.DefinitionPath(env.Resource), ContentType: evidence.ApplyPatch,
		Query: url.Values{"dryRun": {"All"}, "fieldManager": {Lab}, "force": {"true"}}, Body: body})
	return err
}

// Records says whether status.storedVersions names a version now.
func Records(ctx context.Context, env *lesson.Env, version string) (bool, error) {
	crd, err := rewrite.Definition(ctx, env.Probe(), env.Resource)
	if err != nil {
		return false, err
	}
	return slices.Contains(crd.Status.StoredVersions, version), nil
}

// ByRewriter gives what belongs to how the learner has objects rewritten.
func ByRewriter(patch, migration Commands) Commands {
	return func(env *lesson.Env) []string {
		if env.RewriteWith == lesson.WithMigration {
			return migration(env)
		}
		return patch(env)
	}
}
