package pitfalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// planner is a small controller, and the name of its field manager. It knows the new version alone, reads each widget's tier there,
// and gives the widget a plan, as a label.
const planner = "planner"

// unmetered is the plan of a widget without a tier.
const unmetered = "unmetered"

// planFor is what the controller decides.
func planFor(object *evidence.View) (plan string, decided bool) {
	plan = unmetered
	if tier, there := object.Field("spec", "tier"); there {
		plan = fmt.Sprint(tier)
	}
	has, _ := object.Field("metadata", "labels", "plan")
	return plan, has == plan
}

// planning runs the controller while something is done, and until it has nothing left to do.
func planning(ctx context.Context, env *lesson.Env, do func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(ctx)
	g.Go(func() error { // ends when the other has stopped it, or fails
		if err := runPlanner(running, env); err != nil && running.Err() == nil {
			return fmt.Errorf("the controller %s: %w", planner, err)
		}
		return nil
	})
	g.Go(func() error {
		defer stop()
		if err := do(ctx); err != nil {
			return err
		}
		return allPlanned(ctx, env)
	})
	return g.Wait()
}

// runPlanner does what a controller does: it lists, then watches, and begins again where the watch ends. It ends with its context.
func runPlanner(ctx context.Context, env *lesson.Env) error {
	for {
		var names []string
		at, err := kit.Each(ctx, env, newVersion, func(name string, _ *evidence.View) { names = append(names, name) })
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := planOne(ctx, env, name); err != nil {
				return err
			}
		}
		watch, err := env.Probe().Watch(ctx, env.Path(newVersion, ""), url.Values{"resourceVersion": {at}})
		if err != nil {
			return err
		}
		if watch.Refused() { // as it may be for a moment after a change of the CRD
			if err := pause(ctx); err != nil {
				return err
			}
			continue
		}
		for event := range watch.Events {
			var object struct{ Metadata struct{ Name string } }
			if event.Type != "ADDED" && event.Type != "MODIFIED" {
				continue
			}
			if err := json.Unmarshal(event.Object, &object); err != nil {
				return fmt.Errorf("read an event: %w", err)
			}
			if err := planOne(ctx, env, object.Metadata.Name); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// planOne reads a widget, and writes its plan where it has another.
func planOne(ctx context.Context, env *lesson.Env, name string) error {
	r, err := env.Probe().Unrecorded().Get(ctx, env.Path(newVersion, name), nil)
	if err != nil || r.Status == http.StatusNotFound {
		return err
	}
	if r.Refused() {
		return r.Err()
	}
	plan, decided := planFor(&evidence.View{Status: r.Status, Object: r.Body})
	if decided {
		return nil
	}
	// Who is stopped waits for the answer to what was sent: others see the write before it comes.
	w, err := env.Client.Patch(context.WithoutCancel(ctx), env.Path(newVersion, name), evidence.MergePatch, planner, []byte(`{"metadata":{"labels":{"plan":"`+plan+`"}}}`))
	if err != nil {
		return err
	}
	return w.Err()
}

// allPlanned waits until every widget has the plan that its tier asks for.
func allPlanned(ctx context.Context, env *lesson.Env) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lesson.Timeout, errors.New("not every widget had its plan within "+lesson.Timeout.String()))
	defer cancel()
	for {
		open := false
		_, err := kit.Each(ctx, env, newVersion, func(_ string, object *evidence.View) {
			_, decided := planFor(object)
			open = open || !decided
		})
		if err != nil || !open {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits a moment before the server is asked again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// planCommand does by hand what the controller does.
const planCommand = `kubectl get NEW -o go-template='{{range .items}}{{$plan := "` + unmetered + `"}}{{with .spec.tier}}{{$plan = .}}{{end}}` +
	`{{if ne (printf "%v" (index .metadata.labels "plan")) $plan}}{{.metadata.name}} {{$plan}}{{"\n"}}{{end}}{{end}}' |
while read w plan; do kubectl label NEW $w plan=$plan --overwrite --field-manager=` + planner + `; done`

// plan lets the controller work until it has nothing left to do.
func plan(id string) lesson.Action {
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			return planning(ctx, env, func(context.Context) error { return nil })
		},
		Kubectl: kit.Kubectl(planCommand),
		Change:  kit.Lines("  the controller labels every widget: plan, by its tier"),
	}
}
