package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func trimStoredVersions() lesson.Step {
	return lesson.Step{
		ID:     "trim-stored-versions",
		WhatIf: []string{"pitfalls/early-trim", "pitfalls/svm-record"},
		Actions: []lesson.Action{{
			ID: "main-resource",
			Do: func(ctx context.Context, env *lesson.Env) error {
				recorded, err := kit.Records(ctx, env, oldVersion)
				if err != nil {
					return err
				}
				list := newVersion
				if !recorded { // that is what stands there: only another list shows that it is ignored
					list = oldVersion
				}
				_, err = env.Client.Patch(ctx, evidence.DefinitionPath(env.Resource), evidence.MergePatch, kit.Lab, listPatch(list))
				return err
			},
			Kubectl: kit.ByRewriter(kit.Kubectl(throughCRD(newVersion)), kit.Kubectl(throughCRD(oldVersion))),
			Change:  kit.ByRewriter(kit.Lines("  the right list, through the CRD itself"), kit.Lines("  an untrue list, through the CRD itself")),
		}, {
			ID: "untrue",
			// lists that name what is not stored, and not what is; by dry run, so that nothing comes of it
			Do: func(ctx context.Context, env *lesson.Env) error {
				for _, untrue := range []string{oldVersion, neverVersion} {
					_, err := env.Client.Do(ctx, evidence.Request{Method: http.MethodPatch, Path: statusPath(env.Resource.String()),
						Query: url.Values{"dryRun": {"All"}, "fieldManager": {kit.Lab}}, ContentType: evidence.MergePatch, Body: listPatch(untrue)})
					if err != nil {
						return err
					}
				}
				return nil
			},
			Kubectl: kit.Kubectl(`kubectl patch crd CRD --subresource=status --type=merge --dry-run=server -p '`+string(listPatch(oldVersion))+`'`,
				`kubectl patch crd CRD --subresource=status --type=merge --dry-run=server -p '`+string(listPatch(neverVersion))+`'`),
			Change: kit.Lines("  two untrue lists, as dry runs"),
		}, {
			ID:      "trim",
			Do:      kit.Trim,
			Kubectl: kit.TrimCommands,
			Change:  kit.ByRewriter(kit.Lines("- status.storedVersions  v1alpha1"), kit.Lines("  status.storedVersions, where anything is left to trim")),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"bytes", "spec", "nothing"},
			Answer: func(e lesson.Evidence) (string, error) {
				stale, never := untrueList(e, oldVersion), untrueList(e, neverVersion)
				asked := stale != nil && never != nil
				// the one names a version of which there are no bytes, the other a version that spec.versions lacks
				return kit.Choose([]string{"bytes", "spec", "nothing"}, asked && stale.Refused(), asked && never.Refused(), asked)
			},
		},
		Checks: []lesson.Check{
			{ID: "ignored", Kind: lesson.Done, Eval: ignored},
			{ID: "untrue-accepted", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "both untrue lists are accepted"
				for _, v := range []string{oldVersion, neverVersion} {
					x := untrueList(e, v)
					if x == nil {
						return lesson.Holds(false, want, "nobody asked for ["+v+"], by dry run")
					}
					if x.Refused() {
						return lesson.Holds(false, want, kit.Answer(*x)+" to ["+v+"]")
					}
				}
				return lesson.Holds(true, want, want)
			}},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(newVersion)},
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
			{ID: "main-resource", Seen: func(e lesson.Evidence) bool { return e.After.Lists(oldVersion) && throughMain(e) != nil }},
			{ID: "nobody-tried", Seen: func(e lesson.Evidence) bool {
				return slices.Equal(e.After.StoredVersions(), []string{newVersion}) && ignored(e).Result == lesson.Failed
			}},
			{ID: "no-dry-run", Seen: func(e lesson.Evidence) bool {
				return slices.Equal(e.After.StoredVersions(), []string{newVersion}) && (untrueList(e, oldVersion) == nil || untrueList(e, neverVersion) == nil)
			}},
		},
		Lasts: func(o *evidence.Observation) bool { return o.CRD != nil && !o.Lists(oldVersion) },
	}
}

func statusPath(crd string) string { return evidence.DefinitionsPath + "/" + crd + "/status" }

// neverVersion is a version that this CRD never had.
const neverVersion = "v0"

// throughCRD is the common mistake: storedVersions patched through the CRD itself.
func throughCRD(version string) string {
	return `kubectl patch crd CRD --type=merge -p '` + string(listPatch(version)) + `'`
}

// listPatch declares one version as all of storedVersions.
func listPatch(version string) []byte {
	return []byte(`{"status":{"storedVersions":["` + version + `"]}}`)
}

// declared reads storedVersions out of a patch or a CRD.
func declared(body string) []string {
	var d struct {
		Status struct{ StoredVersions []string }
	}
	_ = json.Unmarshal([]byte(body), &d) // what cannot be read declares nothing
	return d.Status.StoredVersions
}

// untrueList is a dry run that declared one version, which is not the storage version, as all of storedVersions.
func untrueList(e lesson.Evidence, version string) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool {
		return x.Method == http.MethodPatch && x.To(statusPath(e.Resource.String())) && x.DryRun() && version != e.After.StorageVersion() &&
			slices.Equal(declared(x.Body), []string{version})
	})
}

// throughMain is a patch that declared another list through the CRD itself, was accepted, and ignored; nil where nobody sent one.
func throughMain(e lesson.Evidence) *evidence.Exchange {
	return e.Find(func(x evidence.Exchange) bool {
		return kit.ChangesCRD(e, x) && !x.Refused() && len(declared(x.Body)) > 0 && !slices.Equal(declared(x.Body), declared(x.Response))
	})
}

// ignored checks that somebody sent such a patch.
func ignored(e lesson.Evidence) lesson.Outcome {
	const want = "accepted, and storedVersions as it was"
	if x := throughMain(e); x != nil {
		return lesson.Holds(true, want, fmt.Sprintf("%s, and storedVersions %v", kit.Answer(*x), declared(x.Response)))
	}
	return lesson.Holds(false, want, "nobody declared another list through the CRD itself")
}
