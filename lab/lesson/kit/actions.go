// Package kit is what the tracks have in common: actions that apply manifests, the kubectl commands that do the same, and
// checks of what every lesson looks at. It knows no CRD and no version: those are the track's.
package kit

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/manifests"
)

// Lab is the field manager of what the lab does itself.
const Lab = "crdlab"

// Manifest is the YAML of an action of the track's.
func Manifest(env *lesson.Env, step, action string) ([]byte, error) {
	return manifests.Render(env.Track.ID, step, action, env.Manifest())
}

// ApplyCRD applies the CRD of an action's manifest, as the lab's own field manager.
func ApplyCRD(ctx context.Context, env *lesson.Env, step, action string) error {
	body, err := Manifest(env, step, action)
	if err != nil {
		return err
	}
	r, err := env.Client.Apply(ctx, evidence.DefinitionPath(env.Resource), Lab, true, body)
	if err == nil && r.Elsewhere() {
		return r.Err() // what the action would wait for now will not come
	}
	return err
}

// PatchDefinition sends a merge patch of the CRD.
func PatchDefinition(ctx context.Context, env *lesson.Env, body string) error {
	_, err := env.Client.Patch(ctx, evidence.DefinitionPath(env.Resource), evidence.MergePatch, Lab, []byte(body))
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

// Create creates the objects of an action's manifest; those that are there stay as they are.
func Create(ctx context.Context, env *lesson.Env, step, action, version string) error {
	body, err := Manifest(env, step, action)
	if err != nil {
		return err
	}
	return each(ctx, manifests.Split(body), func(ctx context.Context, doc string) error {
		name, raw, err := Parse(doc)
		if err != nil {
			return err
		}
		if there, err := env.Probe().Get(ctx, env.Path(version, name), nil); err != nil || there.Status == http.StatusOK {
			return err
		}
		_, err = env.Client.Create(ctx, env.Path(version, ""), Lab, raw)
		return err
	})
}

// Apply is a server-side apply of the one object of an action's manifest, without force: what others own stays theirs.
func Apply(ctx context.Context, env *lesson.Env, step, action, version, manager string) error {
	body, err := Manifest(env, step, action)
	if err != nil {
		return err
	}
	name, _, err := Parse(string(body))
	if err != nil {
		return err
	}
	_, err = env.Client.Apply(ctx, env.Path(version, name), manager, false, body)
	return err
}

// Parse reads one document of a manifest.
func Parse(doc string) (name string, asJSON []byte, err error) {
	if asJSON, err = yaml.YAMLToJSON([]byte(doc)); err != nil {
		return "", nil, err
	}
	var head struct{ Metadata struct{ Name string } }
	err = yaml.Unmarshal([]byte(doc), &head)
	return head.Metadata.Name, asJSON, err
}

// Until asks the server, as a probe, until it answers as it will from then on. A change of the CRD is answered before the
// server's handler has taken it up; no event tells when it has.
func Until(ctx context.Context, env *lesson.Env, path string, inEffect func(*evidence.Response) bool) error {
	late := fmt.Errorf("the server did not take up the change of the CRD within %s (asked by GET %s)", lesson.Timeout, path)
	ctx, cancel := context.WithTimeoutCause(ctx, lesson.Timeout, late)
	defer cancel()
	var last error // why it could not be asked, the last time
	for {
		r, err := env.Probe().Unrecorded().Get(ctx, path, nil)
		if err == nil && inEffect(r) {
			return nil
		}
		if err == nil && r.Elsewhere() {
			err = r.Err()
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause != late || last == nil {
				return cause
			}
			return fmt.Errorf("wait until the change of the CRD is in effect, for %s: %w", lesson.Timeout, last)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Answers is for Until: the status that is waited for.
func Answers(status int) func(*evidence.Response) bool {
	return func(r *evidence.Response) bool { return r.Status == status }
}

// Get is a read that is part of a step, and so of its evidence.
func Get(ctx context.Context, env *lesson.Env, version, name string) error {
	_, err := env.Client.Get(ctx, env.Path(version, name), nil)
	return err
}

// Rewriter rewrites the track's objects.
func Rewriter(env *lesson.Env) *rewrite.Rewriter {
	return &rewrite.Rewriter{Client: env.Client, Storage: env.Storage, Resource: env.Resource, Namespace: env.Namespace,
		Progress: env.Progress, Gate: env.Gate}
}

// Guard is the CRD as it is now, so that a later change can be made to depend on it.
func Guard(ctx context.Context, env *lesson.Env) (rewrite.Guard, error) {
	return rewrite.ReadGuard(ctx, env.Probe(), env.Resource)
}

// Replacing changes the CRD, and waits until the server has replaced the handler of its objects. Where no answer would
// tell, the end of a watch does: the server ends every watch of the handler that it takes away. The watch is at a version
// that is served.
func Replacing(ctx context.Context, env *lesson.Env, version string, change func() error) error {
	before, err := Guard(ctx, env)
	if err != nil {
		return err
	}
	watching, cancel := context.WithTimeoutCause(ctx, lesson.Timeout, fmt.Errorf("the server did not replace the handler of %s within %s", env.Resource, lesson.Timeout))
	defer cancel()
	ended, err := env.Probe().WatchEnds(watching, env.Path(version, ""))
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := Guard(ctx, env)
	if err != nil || after.Generation == before.Generation {
		return err // nothing was changed: nothing is replaced
	}
	<-ended // with the context at the latest
	return context.Cause(watching)
}
