package pitfalls

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

// LargeRewrite is the track of many objects that are rewritten beside others who use the server: what these notice of it at full
// speed and at a polite one, and what is left to do after the rewrite was killed.
func LargeRewrite() *lesson.Track {
	var t many
	track := pitfall("large-rewrite", 8, t.objects(), t.rewrite(), t.finish())
	track.Needs = []lesson.Needs{lesson.NeedsBytes}
	track.Widgets = manyWidgets
	return track
}

// many has the track's steps.
type many struct{}

const (
	manyWidgets = 10_000
	watchers    = 20 // that others have open on the objects
	polite      = 2  // how much slower the second half is to be written than the first
)

func (many) objects() lesson.Step {
	objects := quietly(widgets())
	objects.Kubectl = createMany
	objects.Change = func(env *lesson.Env) []string { return []string{fmt.Sprintf("+ %d widgets  at v1alpha1", env.Widgets)} }
	return lesson.Step{
		ID:      "many",
		Actions: []lesson.Action{created(), objects, switched()},
		Predict: &lesson.Prediction{
			Options: []string{"none", "some", "all"},
			Answer: func(e lesson.Evidence) (string, error) {
				n := e.StoredAt(newVersion)
				return kit.Choose([]string{"none", "all", "some"}, n == 0 && e.Total() > 0, n == e.Total() && n > 0, n > 0)
			},
		},
		Checks: []lesson.Check{
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{oldVersion: e.Widgets}
			})},
			{ID: "record", Kind: lesson.Done, Eval: kit.Record(oldVersion, newVersion)},
		},
	}
}

// createMany are commands that create the objects: those that the lessons speak of, and all others with one kubectl.
func createMany(env *lesson.Env) []string {
	few := *env
	few.Widgets = lesson.MinWidgets
	rest := fmt.Sprintf(`for i in $(seq %d %d); do
  printf -- '---\napiVersion: GROUP/OLDVERSION\nkind: Widget\nmetadata: {name: widget-%%05d, labels: {app.kubernetes.io/managed-by: crdlab}}\nspec: {size: %%d, color: grey}\n' $i $i
done | kubectl create -f - >/dev/null`, lesson.MinWidgets+1, env.Widgets)
	commands := kit.FromManifest("kubectl apply", shared, "widgets")(&few)
	if env.Widgets > lesson.MinWidgets {
		commands = append(commands, kit.Kubectl(rest)(env)...)
	}
	return commands
}

func (many) rewrite() lesson.Step {
	return lesson.Step{
		ID: "rewrite",
		Actions: []lesson.Action{{
			ID:     "rewrite",
			Do:     rewriteTwice,
			Change: kit.Lines("~ half of the widgets: a merge patch {} at v1beta1, as fast as the server takes it; killed", "~ the rest: the same, at a polite rate"),
		}},
		Predict: &lesson.Prediction{
			Options: []string{"full", "polite", "same"},
			Answer: func(e lesson.Evidence) (string, error) {
				full, slow, err := halves(e)
				if err != nil {
					return "", err
				}
				return kit.Choose([]string{"full", "polite", "same"}, full.P99MS > slow.P99MS, full.P99MS < slow.P99MS, true)
			},
		},
		Checks: []lesson.Check{
			{ID: "killed", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "ended in the middle"
				full, _, err := halves(e)
				if err != nil {
					return lesson.Holds(false, want, err.Error())
				}
				return kit.Holds(full.Interrupted && full.Written > 0 && full.Written < e.Total(), want, fmt.Sprintf("interrupted: %v, %d of %d written", full.Interrupted, full.Written, e.Total()))
			}},
			{ID: "resumed", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				full, slow, err := halves(e)
				if err != nil {
					return lesson.Holds(false, "the rest was written", err.Error())
				}
				return lesson.Expected(fmt.Sprintf("%d written", e.Total()-full.Written), fmt.Sprintf("%d written", slow.Written))
			}},
			{ID: "once", Kind: lesson.Done, Eval: func(e lesson.Evidence) lesson.Outcome {
				const want = "one event a write and watcher"
				if e.Rewrite == nil || e.Rewrite.Loaded == nil {
					return lesson.Holds(false, want, "it was not measured")
				}
				all := e.Rewrite.Loaded
				return kit.Holds(all.Watchers > 0 && all.Events == all.Written*all.Watchers, want, fmt.Sprintf("%d writes, %d watchers, %d events", all.Written, all.Watchers, all.Events))
			}},
			{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
				return map[string]int{newVersion: e.Before.Stored.Total}
			})},
		},
	}
}

// halves are what both parts of the rewrite were for others.
func halves(e lesson.Evidence) (full, slow rewrite.Load, err error) {
	if e.Rewrite == nil || len(e.Rewrite.Loads) != 2 {
		return full, slow, fmt.Errorf("the two parts of the rewrite were not measured: %w", lesson.ErrNoAnswer)
	}
	return e.Rewrite.Loads[0], e.Rewrite.Loads[1], nil
}

// rewriteTwice rewrites until half of the work is done, and is killed; then it begins anew, and takes its time. Others watch
// and read all the while.
func rewriteTwice(ctx context.Context, env *lesson.Env) error {
	r := kit.Rewriter(env)
	r.Client = env.Client.Unrecorded()
	left, err := storage.Count(ctx, env.Storage, env.Resource)
	if err != nil {
		return err
	}
	stale := left.Total - left.ByVersion[newVersion]
	if stale == 0 {
		return nil // it was done before
	}
	others, err := r.Bystanders(ctx, newVersion, alpha, watchers)
	if err != nil {
		return err
	}
	defer others.Close()

	killed, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	fast := *r
	var begun atomic.Int64
	fast.Gate = func(ctx context.Context) error {
		if int(begun.Add(1)) > stale/2 {
			kill(rewrite.ErrInterrupted)
			return rewrite.ErrInterrupted
		}
		return env.Gate(ctx)
	}
	full, err := others.During(ctx, func(context.Context) error {
		_, err := fast.Rewrite(killed, newVersion)
		return err
	})
	if err != nil {
		return err
	}

	slow := *r
	slow.QPS = full.Rate / polite
	var result *rewrite.Result
	slowly, err := others.During(ctx, func(ctx context.Context) (err error) {
		result, err = slow.Rewrite(ctx, newVersion)
		return err
	})
	if err != nil {
		return err
	}
	result.Loads, result.Loaded = []rewrite.Load{*full, *slowly}, others.All()
	env.Rewrite = result
	return nil
}

func (many) finish() lesson.Step {
	return lesson.Step{
		ID:      "finish",
		Actions: []lesson.Action{trim(), quietly(relabel()), remove()},
		Judge:   kit.Judge,
		Predict: &lesson.Prediction{
			Options: []string{"again", "no"},
			Answer: func(e lesson.Evidence) (string, error) {
				was, is := e.Before.Object(alpha), e.After.Object(alpha)
				if was == nil || is == nil {
					return "", lesson.ErrNoAnswer
				}
				return kit.Choose([]string{"again", "no"}, is.ResourceVersion != was.ResourceVersion, true)
			},
		},
		Checks: inPlace(),
	}
}
