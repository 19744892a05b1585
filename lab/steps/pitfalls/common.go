package pitfalls

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// The versions of the CRD, the same for all pitfalls. What the run says of them is read from the server; these are the names
// that the steps ask for.
const (
	oldVersion = "v1alpha1"
	newVersion = "v1beta1"
)

// The objects that the lessons speak of. A track says which of them has a part to play.
const (
	alpha   = "alpha"
	bravo   = "bravo"
	charlie = "charlie"
	delta   = "delta"
	echo    = "echo"
	foxtrot = "foxtrot" // made after the storage switch
)

// pitfall is a track of what goes wrong, by the name of its folders.
func pitfall(name string, minutes int, steps ...lesson.Step) *lesson.Track {
	folder, err := fs.Sub(prose, name)
	if err != nil {
		panic(err) // the name is no path
	}
	return &lesson.Track{
		ID:       "pitfalls/" + name,
		Group:    lesson.Pitfalls,
		Strategy: "None",
		Versions: []string{oldVersion, newVersion},
		Plural:   "widgets",
		Minutes:  minutes,
		Subject:  alpha,
		Named:    []string{alpha, bravo, charlie, delta, echo},
		Prose:    folder,
		Steps:    steps,
	}
}

// ── actions that several tracks have, with the manifests that they share ──

// shared stands for the step of an action whose manifest is not one step's.
const shared = ""

// created makes the CRD with the old version alone.
func created() lesson.Action { return kit.CreateCRD(shared, "crd") }

// widgets makes the objects, through the old version.
func widgets() lesson.Action {
	return lesson.Action{
		ID: "widgets",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Create(ctx, env, shared, "widgets", oldVersion)
		},
		Kubectl: kit.FromManifest("kubectl apply", shared, "widgets"),
		Change:  kit.Lines("+ alpha, bravo, charlie, delta, echo  at v1alpha1"),
	}
}

// bothServed adds the new version, served, while the old one stays the storage version.
func bothServed() lesson.Action {
	return lesson.Action{
		ID: "both",
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := kit.ApplyCRD(ctx, env, shared, "both"); err != nil {
				return err
			}
			return kit.Until(ctx, env, env.Path(newVersion, ""), kit.Answers(http.StatusOK))
		},
		Kubectl: kit.FromManifest("kubectl apply", shared, "both"),
		Change:  kit.Lines("+ spec.versions[v1beta1]  served, not storage"),
	}
}

// switched makes the new version the storage version, and adds it where it is not there yet.
func switched() lesson.Action {
	a := kit.SwitchStorage(shared, "switch")
	a.Kubectl = kit.Then(kit.FromManifest("kubectl apply", shared, "switch"), kit.Kubectl("sleep 1"))
	a.Change = kit.Lines("+ spec.versions[v1beta1].storage   true")
	return a
}

// makeFoxtrot creates an object after the storage switch.
func makeFoxtrot() lesson.Action {
	return lesson.Action{
		ID: "foxtrot",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Create(ctx, env, shared, "foxtrot", newVersion)
		},
		Kubectl: kit.FromManifest("kubectl apply", shared, "foxtrot"),
		Change:  kit.Lines("+ foxtrot  at v1beta1"),
	}
}

// askRemoval asks by a dry run whether the old version may go.
func askRemoval(expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID:      "ask",
		Do:      func(ctx context.Context, env *lesson.Env) error { return kit.AskCRD(ctx, env, shared, "remove") },
		Kubectl: kit.AskRemoval,
		Change:  kit.Lines("  the removal of v1alpha1, as a dry run"),
		Expect:  expect,
	}
}

// trim declares that the new version is all that was ever stored. It believes it.
func trim() lesson.Action {
	return lesson.Action{ID: "trim", Do: kit.Trim, Kubectl: kit.TrimCommands, Change: kit.Lines("- status.storedVersions  v1alpha1")}
}

// remove takes the old version out of spec.versions.
func remove() lesson.Action {
	return lesson.Action{
		ID: "remove",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, shared, "remove") })
		},
		Kubectl: kit.Then(kit.PatchCRD(kit.RemoveOldest), kit.Kubectl("sleep 2")),
		Change:  kit.Lines("- spec.versions[v1alpha1]"),
	}
}

// addUnserved brings the old version back, only so that the server can read what is stored at it, and waits until an object
// is read.
func addUnserved(object string) lesson.Action {
	return lesson.Action{
		ID: "unserved",
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := kit.ApplyCRD(ctx, env, shared, "unserved"); err != nil {
				return err
			}
			if err := kit.Until(ctx, env, env.Path(newVersion, object), kit.Answers(http.StatusOK)); err != nil {
				return err
			}
			return kit.Get(ctx, env, newVersion, object)
		},
		Kubectl: kit.Then(kit.FromManifest("kubectl apply", shared, "unserved"), kit.Kubectl("sleep 1; kubectl get NEW "+object)),
		Change:  kit.Lines("+ spec.versions[v1alpha1]  not served"),
	}
}

// rewriteAll has every object written at the new version.
func rewriteAll() lesson.Action {
	return lesson.Action{
		ID: "rewrite",
		Do: func(ctx context.Context, env *lesson.Env) (err error) {
			env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, newVersion)
			return err
		},
		Kubectl: kit.RewriteCommands("NEW"),
		Change:  kit.Lines("~ every widget: a merge patch {} at v1beta1"),
	}
}

// relabel has the entries of managedFields name the new version; the owners stay.
func relabel() lesson.Action {
	return lesson.Action{
		ID: "relabel",
		Do: func(ctx context.Context, env *lesson.Env) (err error) {
			env.Rewrite, err = kit.Rewriter(env).Relabel(ctx, []string{oldVersion}, newVersion)
			return err
		},
		Kubectl: kit.RelabelCommands,
		Change:  kit.Lines("~ metadata.managedFields[*].apiVersion  v1beta1"),
	}
}

// get reads an object at a version, as a part of the step.
func get(id, version, object string, expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID:      id,
		Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Get(ctx, env, version, object) },
		Kubectl: kit.Kubectl("kubectl get widgets." + version + ".GROUP " + object + " -o yaml"),
		Change:  kit.Lines("  read " + object + " at " + version),
		Expect:  expect,
	}
}

// ── checks that several tracks have ──

// inPlace checks what the way back ends with: everything is stored at the new version, which alone is left, in the record and in
// spec.versions; every object is read; and the verdict is complete.
func inPlace() []lesson.Check {
	return []lesson.Check{
		{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
			return map[string]int{newVersion: e.Before.Stored.Total}
		})},
		{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
		{ID: "removed", Kind: lesson.Done, Eval: isRemoved},
		{ID: "readable", Kind: lesson.Done, Eval: readable},
		{ID: "complete", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.Complete},
	}
}

// isRemoved checks that the old version has left spec.versions.
func isRemoved(e lesson.Evidence) lesson.Outcome {
	return lesson.Expected("not in spec.versions", kit.Flags(e, oldVersion))
}

// readable checks that every object can be read at the new version.
func readable(e lesson.Evidence) lesson.Outcome {
	const want = "200 for every object"
	for _, o := range e.After.Objects {
		if s := e.Status(o.Name, newVersion); s != http.StatusOK {
			return lesson.Expected(want, fmt.Sprintf("%s: %d", o.Name, s))
		}
	}
	return kit.Holds(len(e.After.Objects) > 0, want, "no objects")
}

// listRefused checks that a list of all objects, as kubectl asks for one, is refused.
func listRefused(e lesson.Evidence) lesson.Outcome {
	return refused("the list is refused", e.Listing(newVersion))
}

// refused checks that a request was sent, and refused.
func refused(want string, x *evidence.Exchange) lesson.Outcome {
	if x == nil {
		return lesson.Holds(false, want, "nobody asked")
	}
	return lesson.Holds(x.Refused(), want, kit.Answer(*x))
}

// accepted checks that a request was sent, and accepted.
func accepted(want string, x *evidence.Exchange) lesson.Outcome {
	if x == nil {
		return lesson.Holds(false, want, "nobody asked")
	}
	return lesson.Holds(!x.Refused(), want, kit.Answer(*x))
}

// declare applies the CRD of a step's manifest that declares a field of spec at a version as well, and waits until an object
// shows it there.
func declare(ctx context.Context, env *lesson.Env, step, version, object, field string) error {
	if err := kit.ApplyCRD(ctx, env, step, "declare"); err != nil {
		return err
	}
	return kit.Until(ctx, env, env.Path(version, object), func(r *evidence.Response) bool {
		_, shown := kit.ResponseField(&r.Exchange, "spec", field)
		return shown
	})
}
