package migrate

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/manifests"
)

// own is how many objects the manifests of the first step make without the extra ones.
const own = 5

func manifest(env *lesson.Env, step, action string) ([]byte, error) {
	return manifests.Render("migrate", step, action, manifests.Data{Group: env.Resource.Group, Extra: manifests.Extra(own, env.Widgets)})
}

// applyCRD applies the CRD of an action's manifest, as the lab's own field manager.
func applyCRD(ctx context.Context, env *lesson.Env, step, action string) error {
	body, err := manifest(env, step, action)
	if err != nil {
		return err
	}
	_, err = env.Client.Apply(ctx, evidence.DefinitionPath(env.Resource), lab, true, body)
	return err
}

// create makes the objects of an action's manifest; those that are there stay as they are.
func create(ctx context.Context, env *lesson.Env, step, action, version string) error {
	body, err := manifest(env, step, action)
	if err != nil {
		return err
	}
	return each(ctx, manifests.Split(body), func(ctx context.Context, doc string) error {
		name, raw, err := parse(doc)
		if err != nil {
			return err
		}
		if there, err := env.Probe().Get(ctx, env.Path(version, name), nil); err != nil || there.Status == http.StatusOK {
			return err
		}
		_, err = env.Client.Create(ctx, env.Path(version, ""), lab, raw)
		return err
	})
}

// apply is a server-side apply of the one object of an action's manifest, without force: what others own stays theirs.
func apply(ctx context.Context, env *lesson.Env, step, action, version, manager string) error {
	body, err := manifest(env, step, action)
	if err != nil {
		return err
	}
	name, _, err := parse(string(body))
	if err != nil {
		return err
	}
	_, err = env.Client.Apply(ctx, env.Path(version, name), manager, false, body)
	return err
}

func parse(doc string) (name string, asJSON []byte, err error) {
	if asJSON, err = yaml.YAMLToJSON([]byte(doc)); err != nil {
		return "", nil, err
	}
	var head struct{ Metadata struct{ Name string } }
	err = yaml.Unmarshal([]byte(doc), &head)
	return head.Metadata.Name, asJSON, err
}

// until asks the server, as a probe, until it answers as it will from then on. A change of the CRD is answered before the
// server's handler has taken it up; no event tells when it has.
func until(ctx context.Context, env *lesson.Env, path string, inEffect func(*evidence.Response) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lesson.Timeout, fmt.Errorf("the server did not take up the change of the CRD within %s (asked by GET %s)", lesson.Timeout, path))
	defer cancel()
	for {
		r, err := env.Probe().Unrecorded().Get(ctx, path, nil)
		if err == nil && inEffect(r) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// get is a read that is part of a step, and so of its evidence.
func get(ctx context.Context, env *lesson.Env, version, name string) error {
	_, err := env.Client.Get(ctx, env.Path(version, name), nil)
	return err
}

// ── the same with kubectl ──

// kubectl makes commands that do not depend on the cluster's state.
func kubectl(commands ...string) func(*lesson.Env) []string {
	return func(env *lesson.Env) []string {
		out := make([]string, len(commands))
		for i, c := range commands {
			out[i] = strings.NewReplacer("CRD", env.Resource.String(), "OLD", env.Resource.Plural+"."+oldVersion+"."+env.Resource.Group,
				"NEW", env.Resource.Plural+"."+newVersion+"."+env.Resource.Group, "GROUP", env.Resource.Group).Replace(c)
		}
		return out
	}
}

// fromManifest is a command that reads an action's manifest from its standard input.
func fromManifest(command, step, action string) func(*lesson.Env) []string {
	return func(env *lesson.Env) []string {
		body, err := manifest(env, step, action)
		if err != nil {
			return []string{"# " + err.Error()}
		}
		return []string{command + " -f - <<'EOF'\n" + string(body) + "EOF"}
	}
}

// patchCRD is a JSON patch of the CRD that first makes sure that the first entry of spec.versions is the old version.
func patchCRD(op string) func(*lesson.Env) []string {
	return kubectl(`kubectl patch crd CRD --type=json -p '[{"op":"test","path":"/spec/versions/0/name","value":"` + oldVersion + `"},` + op + `]'`)
}

func then(parts ...func(*lesson.Env) []string) func(*lesson.Env) []string {
	return func(env *lesson.Env) []string {
		var out []string
		for _, p := range parts {
			out = append(out, p(env)...)
		}
		return out
	}
}

func lines(l ...string) func(*lesson.Env) []string {
	return func(*lesson.Env) []string { return l }
}
