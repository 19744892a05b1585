package kit

import (
	"context"

	"github.com/crdlab/crdlab/lab/lesson"
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

// ByRewriter gives what belongs to how the learner has objects rewritten.
func ByRewriter(patch, migration Commands) Commands {
	return func(env *lesson.Env) []string {
		if env.RewriteWith == lesson.WithMigration {
			return migration(env)
		}
		return patch(env)
	}
}
