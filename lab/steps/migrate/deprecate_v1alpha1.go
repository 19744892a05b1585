package migrate

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func deprecateOld() lesson.Step {
	const step = "deprecate-v1alpha1"
	return lesson.Step{
		ID:     step,
		WhatIf: []string{"pitfalls/old-client-write"},
		Actions: []lesson.Action{{
			ID: "deprecate",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "deprecate"); err != nil {
					return err
				}
				if err := kit.Until(ctx, env, env.Path(oldVersion, alpha), warns); err != nil {
					return err
				}
				if err := kit.Get(ctx, env, oldVersion, alpha); err != nil {
					return err
				}
				return kit.Get(ctx, env, newVersion, alpha)
			},
			Kubectl: kit.Then(kit.PatchCRD(`{"op":"add","path":"/spec/versions/0/deprecated","value":true}`), kit.Kubectl("sleep 1; kubectl get OLD alpha", "kubectl get NEW alpha")),
			Change:  kit.Lines("+ spec.versions[v1alpha1].deprecated  true"),
		}, {
			ID: "own-warning",
			Do: func(ctx context.Context, env *lesson.Env) error {
				if err := kit.ApplyCRD(ctx, env, step, "own-warning"); err != nil {
					return err
				}
				text, err := ownWarning(ctx, env)
				if err != nil {
					return err
				}
				says := func(r *evidence.Response) bool { return slices.Contains(r.Warnings, text) }
				if err := kit.Until(ctx, env, env.Path(oldVersion, alpha), says); err != nil {
					return err
				}
				return kit.Get(ctx, env, oldVersion, alpha)
			},
			Kubectl: kit.Then(kit.PatchCRD(`{"op":"add","path":"/spec/versions/0/deprecationWarning","value":"widgets: v1alpha1 goes in release 2.0; move to v1beta1, which has every field of it, and spec.tier"}`),
				kit.Kubectl("sleep 1; kubectl get OLD alpha")),
			Change: kit.Lines("+ spec.versions[v1alpha1].deprecationWarning  in your own words"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"blocked", "warned", "silent"},
			Answer: func(e lesson.Evidence) (string, error) {
				x := e.Find(func(x evidence.Exchange) bool { return x.Method == http.MethodGet && kit.At(e, x, oldVersion) })
				return kit.Choose([]string{"blocked", "warned", "silent"}, x != nil && x.Refused(), x != nil && len(x.Warnings) > 0, x != nil)
			},
		},
		Checks: []lesson.Check{
			{ID: "deprecated", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				v := e.After.Version(oldVersion)
				return lesson.Holds(v != nil && v.Deprecated && v.DeprecationWarning != "", "deprecated, with a text of its own", deprecation(v))
			}},
			{ID: "default-warning", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome { return warned(e, DefaultWarning(e)) }},
			{ID: "own-warning", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome { return warned(e, OwnWarning(e)) }},
			{ID: "none-at-v1beta1", Kind: lesson.Done, Eval: noneAtNew},
			{ID: "not-blocked", Kind: lesson.Invariant, Eval: func(e lesson.Evidence) lesson.Outcome {
				for _, x := range slices.Backward(e.Exchanges) { // by hand an earlier one may have gone astray
					if x.Method == http.MethodGet && x.To(kit.ObjectPath(e, oldVersion, alpha)) && x.Refused() {
						return lesson.Holds(false, "who asks is answered", x.Method+" "+x.Path+": "+kit.Answer(x))
					} else if kit.At(e, x, oldVersion) && !x.Refused() {
						break
					}
				}
				return lesson.Expected("200", e.Status(alpha, oldVersion))
			}},
		},
		Wrong: []lesson.Diagnosis{
			{ID: "wrong-one", Seen: func(e lesson.Evidence) bool { v := e.After.Version(newVersion); return v != nil && v.Deprecated }},
			{ID: "only-the-text", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && v.Deprecated && v.DeprecationWarning != "" && DefaultWarning(e) == ""
			}},
			{ID: "nobody-asked", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && v.Deprecated && DefaultWarning(e) == "" && v.DeprecationWarning == ""
			}},
			{ID: "no-text", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && v.Deprecated && DefaultWarning(e) != "" && v.DeprecationWarning == ""
			}},
			{ID: "text-unseen", Seen: func(e lesson.Evidence) bool {
				v := e.After.Version(oldVersion)
				return v != nil && v.Deprecated && v.DeprecationWarning != "" && OwnWarning(e) == ""
			}},
			{ID: "not-asked-new", Seen: func(e lesson.Evidence) bool {
				return OwnWarning(e) != "" && noneAtNew(e).Result == lesson.Failed
			}},
		},
		Lasts: func(o *evidence.Observation) bool { v := o.Version(oldVersion); return v == nil || v.Deprecated },
	}
}

func warns(r *evidence.Response) bool { return len(r.Warnings) > 0 }

// ownWarning reads from the server which text the CRD has now.
func ownWarning(ctx context.Context, env *lesson.Env) (string, error) {
	r, err := env.Probe().Get(ctx, evidence.DefinitionPath(env.Resource), nil)
	if err != nil {
		return "", err
	}
	if r.Err() != nil {
		return "", r.Err()
	}
	crd, err := evidence.ParseCRD(r.Body)
	if err != nil {
		return "", err
	}
	v := (&evidence.Observation{CRD: crd}).Version(oldVersion)
	if v == nil {
		return "", nil
	}
	return v.DeprecationWarning, nil
}

// OwnWarning is the text of the CRD, as far as a request was answered with it.
func OwnWarning(e lesson.Evidence) string {
	v := e.After.Version(oldVersion)
	return findWarning(e, func(text string) bool { return v != nil && text == v.DeprecationWarning })
}

// DefaultWarning is the text that the server makes by itself.
func DefaultWarning(e lesson.Evidence) string {
	v := e.After.Version(oldVersion)
	return findWarning(e, func(text string) bool {
		return (v == nil || text != v.DeprecationWarning) && strings.Contains(text, e.Resource.Group+"/"+oldVersion)
	})
}

func findWarning(e lesson.Evidence, accept func(string) bool) string {
	for _, x := range e.Exchanges {
		if i := slices.IndexFunc(x.Warnings, accept); i >= 0 && kit.At(e, x, oldVersion) {
			return x.Warnings[i]
		}
	}
	return ""
}

func warned(e lesson.Evidence, text string) lesson.Outcome {
	if text == "" {
		return lesson.Holds(false, "a Warning header at "+oldVersion, "none")
	}
	return lesson.Holds(true, "a Warning header at "+oldVersion, text)
}

// noneAtNew checks that after the first warning somebody asked at the new version, and was not warned, the last time.
func noneAtNew(e lesson.Evidence) lesson.Outcome {
	const want = "an answer at " + newVersion + " without a warning"
	got, deprecated := "nobody asked", false
	for _, x := range e.Exchanges {
		deprecated = deprecated || len(x.Warnings) > 0 && kit.At(e, x, oldVersion)
		if !deprecated || !kit.At(e, x, newVersion) {
			continue
		}
		if got = want; len(x.Warnings) > 0 {
			got = strings.Join(x.Warnings, "; ")
		}
	}
	return lesson.Holds(got == want, want, got)
}

func deprecation(v *evidence.Version) string {
	switch {
	case v == nil:
		return "not in spec.versions"
	case !v.Deprecated:
		return "not deprecated"
	case v.DeprecationWarning == "":
		return "deprecated, without a text"
	}
	return "deprecated: " + v.DeprecationWarning
}
