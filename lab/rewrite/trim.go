package rewrite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// ErrChanged says that somebody has changed the CRD since its Guard was read, so that nothing was trimmed.
var ErrChanged = errors.New("the CRD was changed meanwhile")

// ChangedError says what has changed; it is an ErrChanged.
type ChangedError struct {
	CRD      string
	Was, Now Guard
}

// Error names the first thing that differs, and what to do.
func (e *ChangedError) Error() string {
	what := fmt.Sprintf("its resourceVersion was %s and is %s", e.Was.ResourceVersion, e.Now.ResourceVersion)
	switch {
	case e.Was.UID != e.Now.UID:
		what = fmt.Sprintf("it is another CRD of the same name (uid %s, not %s)", e.Now.UID, e.Was.UID)
	case e.Was.Generation != e.Now.Generation:
		what = fmt.Sprintf("its spec was changed (generation %d, not %d)", e.Now.Generation, e.Was.Generation)
	}
	return fmt.Sprintf("%s: %v: %s; look at it, rewrite once more, and then trim", e.CRD, ErrChanged, what)
}

// Is makes it an ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// Guard is what a CRD was when work on it began.
type Guard struct {
	UID        string
	Generation int64
	// ResourceVersion guards against every change, also of the status. Where it is empty, only a change of the spec and
	// another CRD of the name are guarded against.
	ResourceVersion string
}

// ReadGuard reads the Guard of a resource's CRD as it is now.
func ReadGuard(ctx context.Context, client *evidence.Client, resource storage.Resource) (Guard, error) {
	crd, err := Definition(ctx, client, resource)
	if err != nil {
		return Guard{}, err
	}
	return guardOf(crd), nil
}

func guardOf(crd *apiextensionsv1.CustomResourceDefinition) Guard {
	return Guard{UID: string(crd.UID), Generation: crd.Generation, ResourceVersion: crd.ResourceVersion}
}

func (g Guard) holds(now Guard) bool {
	return g.UID == now.UID && g.Generation == now.Generation && (g.ResourceVersion == "" || g.ResourceVersion == now.ResourceVersion)
}

// Trim sets status.storedVersions to the versions to keep, through /status, if the CRD is still what the guard says; else
// the error is an ErrChanged. Nothing is sent where the record reads like that already.
//
// It trims what is declared, and does not look at what is stored: count the bytes before.
func Trim(ctx context.Context, client *evidence.Client, resource storage.Resource, keep []string, guard Guard) error {
	probe := client.As(evidence.ByProbe) // its reads are no part of what is asked for
	crd, err := Definition(ctx, probe, resource)
	if err != nil {
		return err
	}
	if now := guardOf(crd); !guard.holds(now) {
		return &ChangedError{CRD: crd.Name, Was: guard, Now: now}
	}
	if err := keepable(crd, keep); err != nil {
		return fmt.Errorf("trim status.storedVersions of %s: %w", resource, err)
	}
	if slices.Equal(crd.Status.StoredVersions, keep) {
		return nil
	}
	resp, err := client.Patch(ctx, evidence.DefinitionPath(resource)+"/status", evidence.JSONPatch, "", trimPatch(keep, guard))
	if err != nil {
		return fmt.Errorf("trim status.storedVersions of %s: %w", resource, err)
	}
	if testFailed(resp) {
		now, err := ReadGuard(ctx, probe, resource)
		if err != nil {
			return err
		}
		return &ChangedError{CRD: crd.Name, Was: guard, Now: now}
	}
	if err := resp.Err(); err != nil {
		return fmt.Errorf("trim status.storedVersions of %s: %w", resource, err)
	}
	return nil
}

// trimPatch replaces the record, after tests that the server makes in the same moment.
func trimPatch(keep []string, guard Guard) []byte {
	ops := []operation{{"test", "/metadata/uid", guard.UID}, {"test", "/metadata/generation", guard.Generation}}
	if guard.ResourceVersion != "" {
		ops = append(ops, operation{"test", "/metadata/resourceVersion", guard.ResourceVersion})
	}
	patch, err := json.Marshal(append(ops, operation{"replace", "/status/storedVersions", keep}))
	if err != nil {
		panic(err) // strings and numbers can always be marshalled
	}
	return patch
}

// keepable refuses what the server would accept and nobody can mean: a record without the storage version, or with a
// version that does not exist.
func keepable(crd *apiextensionsv1.CustomResourceDefinition, keep []string) error {
	if now := StorageVersion(crd); !slices.Contains(keep, now) {
		return fmt.Errorf("[%s] lacks %s, at which every write is stored", strings.Join(keep, " "), now)
	}
	for _, k := range keep {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == k }) {
			return fmt.Errorf("%s is not in spec.versions: with it in the record, every later change of the spec is refused", k)
		}
	}
	return nil
}
