package kit

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// RemoveOldest is the operation of a JSON patch that takes the oldest version out of spec.versions, for PatchCRD.
const RemoveOldest = `{"op":"remove","path":"/spec/versions/0"}`

// SwitchStorage is the action that makes the newest version the storage version, by its manifest, and waits until that is in
// effect: a write sent as soon as the change is answered may still be stored at the old version.
func SwitchStorage(step, action string) lesson.Action {
	return lesson.Action{
		ID: action,
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := ApplyCRD(ctx, env, step, action); err != nil {
				return err
			}
			_, err := Rewriter(env).WaitInEffect(ctx, env.Newest(), nil)
			return err
		},
		Kubectl: StorageCommands(true),
		Change:  Kubectl("- spec.versions[OLDVERSION].storage  true", "+ spec.versions[NEWVERSION].storage   true"),
	}
}

// StorageCommands make the newest version the storage version, or else the oldest.
func StorageCommands(newest bool) Commands {
	return PatchCRD(fmt.Sprintf(`{"op":"replace","path":"/spec/versions/0/storage","value":%t},{"op":"test","path":"/spec/versions/1/name","value":"NEWVERSION"},{"op":"replace","path":"/spec/versions/1/storage","value":%t}`, !newest, newest))
}

// StopServing is the action that stops serving the oldest version, by its manifest, and waits until a request for an object
// there is answered so.
func StopServing(step, action, object string) lesson.Action {
	return lesson.Action{
		ID: action,
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := ApplyCRD(ctx, env, step, action); err != nil {
				return err
			}
			return Until(ctx, env, env.Path(env.Oldest(), object), Answers(http.StatusNotFound))
		},
		Kubectl: PatchCRD(`{"op":"replace","path":"/spec/versions/0/served","value":false}`),
		Change:  Kubectl("- spec.versions[OLDVERSION].served  true"),
	}
}

// RemovalRefused checks that the removal of the oldest version was refused because the record names it.
func RemovalRefused(e lesson.Evidence) lesson.Outcome {
	const want = "422, because of status.storedVersions[0]"
	x := e.Find(func(x evidence.Exchange) bool { return ChangesCRD(e, x) && x.Refused() })
	if x == nil {
		return lesson.Holds(false, want, "nothing was refused")
	}
	return lesson.Holds(x.Status == http.StatusUnprocessableEntity && lesson.HasCause(*x, "status.storedVersions[0]"), want, Answer(*x))
}

// CreateCRD is the action that creates the CRD with its oldest version alone, by its manifest, and waits until that is served.
func CreateCRD(step, action string) lesson.Action {
	return lesson.Action{
		ID: action,
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := ApplyCRD(ctx, env, step, action); err != nil {
				return err
			}
			return Until(ctx, env, env.Path(env.Oldest(), ""), Answers(http.StatusOK))
		},
		Kubectl: Then(FromManifest("kubectl apply", step, action), Kubectl("kubectl wait --for=condition=Established crd/CRD")),
		Change:  Kubectl("+ spec.versions[OLDVERSION]  served, storage"),
	}
}

// Trim declares the newest version as all of storedVersions, unless the CRD changes meanwhile.
func Trim(ctx context.Context, env *lesson.Env) error {
	guard, err := Guard(ctx, env)
	if err != nil {
		return err
	}
	return rewrite.Trim(ctx, env.Client, env.Resource, []string{env.Newest()}, guard)
}

// NoEntryNames checks that no entry of managedFields names a version.
func NoEntryNames(version string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		want := "no entry names " + version
		if left := ManagersAt(e.After, e.Resource.Group+"/"+version); len(left) > 0 {
			return lesson.Holds(false, want, strings.Join(left, ", "))
		}
		return Holds(len(e.After.Objects) > 0, want, "no objects")
	}
}

// AskedCRD is the first dry run of a change of the CRD; nil where nobody asked.
func AskedCRD(e lesson.Evidence) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool { return ChangesCRD(e, x) && x.DryRun() })
}

// WouldAccept checks that such a dry run was accepted.
func WouldAccept(e lesson.Evidence) lesson.Outcome {
	const want = "accepted, as a dry run"
	x := AskedCRD(e)
	if x == nil {
		return lesson.Holds(false, want, "nobody asked")
	}
	return lesson.Holds(!x.Refused(), want, Answer(*x))
}
