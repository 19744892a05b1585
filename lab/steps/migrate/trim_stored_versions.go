package migrate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
)

func trimStoredVersions() lesson.Step {
	return lesson.Step{
		ID: "trim-stored-versions",
		Actions: []lesson.Action{{
			ID: "wrong-list",
			// a list that names what is not stored, and not what is; by dry run, so that nothing comes of it
			Do: func(ctx context.Context, env *lesson.Env) error {
				_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodPatch, Path: statusPath(env.Resource.String()),
					Query: url.Values{"dryRun": {"All"}, "fieldManager": {lab}}, ContentType: evidence.MergePatch,
					Body: []byte(`{"status":{"storedVersions":["` + oldVersion + `"]}}`)})
				return err
			},
			Kubectl: kubectl(`kubectl patch crd CRD --subresource=status --type=merge --dry-run=server -p '{"status":{"storedVersions":["` + oldVersion + `"]}}'`),
			Change:  lines("~ a dry run: storedVersions [v1alpha1], which is untrue"),
		}, {
			ID: "trim",
			Do: func(ctx context.Context, env *lesson.Env) error {
				guard, err := rewrite.ReadGuard(ctx, env.Probe(), env.Resource)
				if err != nil {
					return err
				}
				return rewrite.Trim(ctx, env.Client, env.Resource, []string{newVersion}, guard)
			},
			Kubectl: kubectl(`kubectl patch crd CRD --subresource=status --type=json -p '[{"op":"test","path":"/status/storedVersions","value":["` + oldVersion + `","` + newVersion + `"]},{"op":"replace","path":"/status/storedVersions","value":["` + newVersion + `"]}]'`),
			Change:  lines("- status.storedVersions  v1alpha1"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"bytes", "spec", "nothing"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := wrongList(e)
				// a list that lacks the storage version, and names a version of which there are no bytes
				return choose([]string{"bytes", "spec", "nothing"}, x != nil && x.Refused() && !lesson.HasCause(*x, "status.storedVersions[0]"),
					x != nil && x.Refused(), x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "wrong-accepted", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "an untrue list is accepted"
				x := wrongList(e)
				if x == nil {
					return lesson.Holds(false, want, "nobody asked, by dry run")
				}
				return lesson.Holds(!x.Refused(), want, answer(*x)+" to "+x.Body)
			}},
			{ID: "record", Kind: lesson.Done, Eval: record(newVersion)},
			{ID: "true", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: func(e lesson.Evidence) lesson.Outcome {
				var stored []string
				for v := range e.After.Stored.ByVersion {
					stored = append(stored, v)
				}
				slices.Sort(stored)
				return lesson.Expected(e.After.StoredVersions(), stored)
			}},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "main-resource", Seen: func(e lesson.Evidence) bool {
				return e.After.Lists(oldVersion) && e.Find(func(x evidence.Exchange) bool {
					return changesCRD(e, x) && !x.Refused() && strings.Contains(x.Body, "storedVersions")
				}) != nil
			}},
			{ID: "untrue", Seen: func(e lesson.Evidence) bool { return e.After.CRD != nil && !e.After.Lists(newVersion) }},
			{ID: "no-dry-run", Seen: func(e lesson.Evidence) bool {
				return slices.Equal(e.After.StoredVersions(), []string{newVersion}) && wrongList(e) == nil
			}},
		},
		Lasts: func(o *evidence.Observation) bool { return o.CRD != nil && !o.Lists(oldVersion) },
	}
}

func statusPath(crd string) string { return evidence.DefinitionsPath + "/" + crd + "/status" }

// wrongList is a dry run that asked for a list which is not what the bytes say.
func wrongList(e lesson.Evidence) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool {
		if x.Method != http.MethodPatch || !x.To(statusPath(e.Resource.String())) || !x.DryRun() {
			return false
		}
		var asked struct {
			Status struct{ StoredVersions []string }
		}
		return json.Unmarshal([]byte(x.Body), &asked) == nil && len(asked.Status.StoredVersions) > 0 &&
			!slices.Contains(asked.Status.StoredVersions, e.After.StorageVersion())
	})
}
