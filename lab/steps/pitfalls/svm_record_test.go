package pitfalls_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/steps/pitfalls"
)

// svmRecord is the track on a server that has no controllers: the test plays their part, with the requests that they send. What
// the API server makes of those is its own doing; that the real controller sends them is tested on a full cluster.
func svmRecord() *lesson.Track {
	track := pitfalls.SVMRecord()
	track.Needs = nil
	part := map[string]func(context.Context, *lesson.Env) error{
		"first-migration/migrate":  func(ctx context.Context, env *lesson.Env) error { return all(ctx, env, begin, end) },
		"second-migration/migrate": func(ctx context.Context, env *lesson.Env) error { return all(ctx, env, begin) },
		"second-migration/end":     func(ctx context.Context, env *lesson.Env) error { return all(ctx, env, end) },
	}
	for i, step := range track.Steps {
		for k, action := range step.Actions {
			if do := part[step.ID+"/"+action.ID]; do != nil {
				track.Steps[i].Actions[k].Do = do
			}
		}
	}
	return track
}

func all(ctx context.Context, env *lesson.Env, parts ...func(context.Context, *lesson.Env) error) error {
	for _, part := range parts {
		if err := part(ctx, env); err != nil {
			return err
		}
	}
	return nil
}

// begin is how the controller begins: a status with its condition, and no list.
func begin(ctx context.Context, env *lesson.Env) error {
	return applyStatus(ctx, env, map[string]any{"conditions": []any{migrating("True", "MigrationRunning")}})
}

// end is how it goes on: it patches the objects, one refuses, and it ends with a list that names the storage version.
func end(ctx context.Context, env *lesson.Env) error {
	refused := 0
	for _, name := range []string{"alpha", "bravo", "charlie", "delta", "echo"} {
		r, err := env.Probe().Patch(ctx, env.Path("v1beta1", name), evidence.MergePatch, "storage-version-migrator-controller", []byte("{}"))
		if err != nil {
			return err
		}
		if r.Refused() {
			if name != "charlie" || r.Status != http.StatusUnprocessableEntity {
				return fmt.Errorf("%s: %w", name, r.Err())
			}
			refused++
			break
		}
	}
	if refused == 0 {
		return fmt.Errorf("charlie was written, and was to be refused")
	}
	return applyStatus(ctx, env, map[string]any{"conditions": []any{migrating("False", "MigrationFailed")}, "storedVersions": []string{"v1beta1"}})
}

func migrating(status, reason string) map[string]any {
	return map[string]any{"type": "StorageMigrating", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

func applyStatus(ctx context.Context, env *lesson.Env, status map[string]any) error {
	crd, err := rewrite.Definition(ctx, env.Probe(), env.Resource)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": crd.Name, "resourceVersion": crd.ResourceVersion}, "status": status})
	if err != nil {
		return err
	}
	r, err := env.Probe().Apply(ctx, evidence.DefinitionPath(env.Resource)+"/status", "migration-runner-controller", true, body)
	if err != nil {
		return err
	}
	return r.Err()
}

var checks = map[string]labtest.Alteration{
	"first-migration/failed":    condition("False MigrationSucceeded"),
	"first-migration/left":      labtest.StoredAs("charlie", "v1beta1"),
	"first-migration/record":    labtest.Record("v1"),
	"first-migration/removable": labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 500 }),

	"second-migration/restored":      during("switch", func(o *evidence.Observation) { o.Stored.ByVersion = map[string]int{"v1alpha1": 4, "v1beta1": 1} }),
	"second-migration/trimmed-first": during("migrate", func(o *evidence.Observation) { o.After = "" }),
	"second-migration/removable":     labtest.Exchanges("dryRun=All", func(x *evidence.Exchange) { x.Status = 500 }),
	"second-migration/failed":        condition("True MigrationRunning"),
	"second-migration/left":          labtest.StoredAs("charlie", "v1beta1"),

	"removal/removed":    func(e *lesson.Evidence) { e.After.CRD = e.Before.CRD },
	"removal/unreadable": labtest.Object("charlie", func(o *evidence.Object) { o.Views["v1beta1"] = &evidence.View{Status: 200} }),
	"removal/list":       labtest.Exchanges("/widgets?limit", func(x *evidence.Exchange) { x.Status = 200 }),
	"removal/bytes":      labtest.Written("charlie"),
}

var questions = map[string]labtest.Question{
	"first-migration":  {Alter: labtest.Record("v1alpha1", "v1beta1"), Right: "both"},
	"second-migration": {Alter: during("migrate", func(o *evidence.Observation) { o.Stored.ByVersion = map[string]int{"v1beta1": 5} }), Right: "end"},
	"removal":          {Alter: labtest.Exchanges("/widgets?limit", func(x *evidence.Exchange) { x.Status = 200 }), Right: "others"},
	"way-back":         {Alter: labtest.Exchanges("/widgets/charlie", func(x *evidence.Exchange) { x.Status = 500 }), Right: "lost"},
}

// condition alters what the CRD says of the migration.
func condition(says string) labtest.Alteration {
	return func(e *lesson.Evidence) { e.After.CRD.Conditions = map[string]string{"StorageMigrating": says} }
}

// during alters what was seen after an action.
func during(action string, change func(*evidence.Observation)) labtest.Alteration {
	return func(e *lesson.Evidence) {
		for i, o := range e.During {
			if o != nil && o.After == action {
				altered := *o
				change(&altered)
				e.During = append(append(e.During[:i:i], &altered), e.During[i+1:]...)
				return
			}
		}
	}
}

func TestAlteredEvidence(t *testing.T) {
	t.Parallel()
	labtest.Altered(t, svmRecord(), withInPlace(svmRecord(), checks), questions)
}

func TestEveryActionMayBeDoneTwice(t *testing.T) {
	t.Parallel()
	labtest.EveryActionMayBeDoneTwice(t, svmRecord())
}

// TestATrueRecordIsNoFailure: on a server whose record stays true, nothing that the track is about can be seen. It says with
// which version and after how many tries, goes on, and ends well.
func TestATrueRecordIsNoFailure(t *testing.T) {
	t.Parallel()
	track := svmRecord()
	truly := func(ctx context.Context, env *lesson.Env) error {
		return applyStatus(ctx, env, map[string]any{"conditions": []any{migrating("False", "MigrationFailed")}})
	}
	for i, step := range track.Steps {
		for k, action := range step.Actions {
			switch step.ID + "/" + action.ID {
			case "first-migration/migrate", "second-migration/migrate", "second-migration/end":
				track.Steps[i].Actions[k].Do = truly
			}
		}
	}
	s := labtest.Start(t, track)
	skipped := map[string]bool{}
	if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		for _, c := range step.Checks {
			if c.Result == lesson.Failed {
				t.Errorf("%s/%s failed: want %q, got %q", step.ID, c.ID, c.Want, c.Got)
			}
			if c.Result == lesson.Skipped {
				skipped[step.ID+"/"+c.ID] = true
				if want := "Kubernetes " + s.State().Cluster.Version + " did not show it; tried: "; len(c.Reason) <= len(want) || c.Reason[:len(want)] != want {
					t.Errorf("%s/%s: %q", step.ID, c.ID, c.Reason)
				}
			}
		}
		if step.Err != nil {
			t.Errorf("%s: %v", step.ID, step.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first-migration/record", "second-migration/trimmed-first", "removal/removed"} {
		if !skipped[id] {
			t.Errorf("%s was not skipped", id)
		}
	}
	now := s.State()
	if last := now.Steps[len(now.Steps)-1]; last.Result != lesson.Passed || now.Result() != lesson.Unknown {
		t.Errorf("the way back %s, the run %s", last.Result, now.Result())
	}
}

func TestEveryActionIsNeeded(t *testing.T) {
	t.Parallel()
	labtest.EveryActionIsNeeded(t, svmRecord)
}
