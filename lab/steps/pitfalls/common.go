package pitfalls

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdlab/crdlab/lab/conversion"
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

// team is the manager of those who write their objects by server-side apply.
const team = "team"

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
		Wrong:    kit.Lost(),
	}
}

// withWebhook gives a pitfall the lab's conversion webhook.
func withWebhook(track *lesson.Track, mappings []conversion.Mapping) *lesson.Track {
	track.Strategy, track.Needs, track.Mappings = "Webhook", []lesson.Needs{lesson.NeedsWebhook}, mappings
	return track
}

// ── actions that several tracks have, with the manifests that they share ──

// shared stands for the step of an action whose manifest is not one step's.
const shared = ""

// created makes the CRD with the old version alone.
func created() lesson.Action { return kit.CreateCRD(shared, "crd") }

// widgets makes the objects, through the old version.
func widgets() lesson.Action {
	return widgetsOf(shared, "+ alpha, bravo, charlie, delta, echo  at v1alpha1")
}

// bothServed adds the new version, served, while the old one stays the storage version.
func bothServed() lesson.Action { return bothServedBy(shared) }

// switched makes the new version the storage version, and adds it where it is not there yet.
func switched() lesson.Action { return switchedBy(shared, "+ spec.versions[v1beta1].storage   true") }

// makeFoxtrot creates an object after the storage switch.
func makeFoxtrot() lesson.Action { return makeFoxtrotBy(shared) }

// makeFoxtrotBy is makeFoxtrot by a step's own manifest.
func makeFoxtrotBy(step string) lesson.Action {
	return lesson.Action{
		ID: "foxtrot",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Create(ctx, env, step, "foxtrot", newVersion)
		},
		Kubectl: kit.FromManifest("kubectl apply", step, "foxtrot"),
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
func remove() lesson.Action { return removedBy(shared) }

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

// rewriteAll has every object that is still stored at the old version written at the new one.
func rewriteAll() lesson.Action {
	return lesson.Action{
		ID: "rewrite",
		Do: func(ctx context.Context, env *lesson.Env) (err error) {
			env.Rewrite, err = kit.Rewriter(env).Rewrite(ctx, newVersion)
			return err
		},
		Kubectl: kit.RewriteCommands("NEW"),
		Change:  kit.Lines("~ every widget still stored at v1alpha1: a merge patch {} at v1beta1"),
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

// patch is a merge patch of an object through a version, as a part of the step.
func patch(id, version, object, body string, expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID:      id,
		Do:      func(ctx context.Context, env *lesson.Env) error { return kit.Patch(ctx, env, version, object, body) },
		Kubectl: kit.Kubectl(patchCommand(version, object, body)),
		Change:  kit.Lines("~ " + object + "  " + body + "  at " + version),
		Expect:  expect,
	}
}

// list lists the objects at a version, as a part of the step.
func list(id, version string, expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID:      id,
		Do:      func(ctx context.Context, env *lesson.Env) error { return kit.List(ctx, env, version, false) },
		Kubectl: kit.Kubectl("kubectl get widgets." + version + ".GROUP"),
		Change:  kit.Lines("  list the widgets at " + version),
		Expect:  expect,
	}
}

// watch watches the objects at the new version for a second, and so sees what the server sends first.
func watch(expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID: "watch",
		Do: func(ctx context.Context, env *lesson.Env) error {
			_, err := env.Client.Get(ctx, env.Path(newVersion, ""), url.Values{"watch": {"1"}, "timeoutSeconds": {"1"}})
			return err
		},
		Kubectl: kit.Kubectl(`kubectl get --raw "` + kit.CollectionURL("NEWVERSION") + `?watch=1&timeoutSeconds=1"`),
		Change:  kit.Lines("  watch the widgets"),
		Expect:  expect,
	}
}

// eachObject does something with every object as it is listed at a version, page by page: such a list is not refused after a
// change of the CRD.
func eachObject(ctx context.Context, env *lesson.Env, client *evidence.Client, version string, do func(*unstructured.Unstructured) error) error {
	query := url.Values{"limit": {"500"}}
	for {
		r, err := client.Get(ctx, env.Path(version, ""), query)
		if err == nil {
			err = r.Err()
		}
		var page unstructured.UnstructuredList
		if err == nil {
			err = page.UnmarshalJSON(r.Body)
		}
		if err != nil {
			return fmt.Errorf("list the objects at %s: %w", version, err)
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if page.GetContinue() == "" {
			return nil
		}
		query.Set("continue", page.GetContinue())
	}
}

// ── checks that several tracks have ──

// inPlace checks what the way back ends with: everything is stored at the new version, which alone is left, in the record and in
// spec.versions; every object is read; and the verdict is complete.
func inPlace() []lesson.Check { return endsAt(newVersion, oldVersion) }

// endsAt checks that of a version that is left, and of the other, which is gone.
func endsAt(left, gone string) []lesson.Check {
	return []lesson.Check{
		{ID: "stored", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.StoredAt(func(e lesson.Evidence) map[string]int {
			return map[string]int{left: e.Before.Stored.Total}
		})},
		{ID: "record", Kind: lesson.Done, Eval: kit.Record(left)},
		{ID: "removed", Kind: lesson.Done, Eval: notInVersions(gone)},
		{ID: "readable", Kind: lesson.Done, Eval: readableAt(left)},
		{ID: "complete", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.Complete},
	}
}

// isRemoved checks that the old version has left spec.versions.
var isRemoved = notInVersions(oldVersion)

func notInVersions(version string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		return lesson.Expected("not in spec.versions", kit.Flags(e, version))
	}
}

// readableAt checks that every object can be read at a version.
func readableAt(version string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		const want = "200 for every object"
		for _, o := range e.After.Objects {
			if s := e.Status(o.Name, version); s != http.StatusOK {
				return lesson.Expected(want, fmt.Sprintf("%s: %d", o.Name, s))
			}
		}
		return kit.Holds(len(e.After.Objects) > 0, want, "no objects")
	}
}

// whatAListSays is the question what somebody gets who lists all objects.
func whatAListSays() *lesson.Prediction {
	return &lesson.Prediction{
		Options: []string{"others", "all", "error"},
		Answer: func(e lesson.Evidence) (string, error) {
			x := e.Listing(newVersion)
			return kit.Choose([]string{"error", "all", "others"}, x != nil && x.Refused(), x != nil && e.After.Version(oldVersion) != nil, x != nil)
		},
	}
}

// listRefused checks that a list of all objects, as kubectl asks for one, is refused.
func listRefused(e lesson.Evidence) lesson.Outcome {
	return refused("the list is refused", e.Listing(newVersion))
}

// watchRefused checks that a watch of all objects is refused.
func watchRefused(e lesson.Evidence) lesson.Outcome {
	return refused("the watch is refused", e.Find(func(x evidence.Exchange) bool { return kit.IsWatch(e, x, newVersion) }))
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

// asProbe is for what puts the scene right, and is no part of what a step shows.
func asProbe(env *lesson.Env) *lesson.Env {
	unseen := *env
	unseen.Client = env.Probe()
	return &unseen
}

// observed is what was seen after an action; by hand, in the end.
func observed(e lesson.Evidence, action string) *evidence.Observation {
	if o := e.AfterAction(action); o != nil {
		return o
	}
	return e.After
}

// repaint is a patch that any schema takes.
const repaint = `{"spec":{"color":"purple"}}`

// ── what tracks with schemas of their own need ──

// widgetsOf makes the objects of a step's manifest, through the old version.
func widgetsOf(step string, change ...string) lesson.Action {
	return lesson.Action{
		ID: "widgets",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Create(ctx, env, step, "widgets", oldVersion)
		},
		Kubectl: kit.FromManifest("kubectl apply", step, "widgets"),
		Change:  kit.Lines(change...),
	}
}

// bothServedBy adds the new version, served, by a step's manifest, while the old one stays the storage version.
func bothServedBy(step string) lesson.Action {
	return lesson.Action{
		ID: "both",
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := kit.ApplyCRD(ctx, env, step, "both"); err != nil {
				return err
			}
			return kit.Until(ctx, env, env.Path(newVersion, ""), kit.Answers(http.StatusOK))
		},
		Kubectl: kit.FromManifest("kubectl apply", step, "both"),
		Change:  kit.Lines("+ spec.versions[v1beta1]  served, not storage"),
	}
}

// switchedBy makes the new version the storage version, by a step's manifest.
func switchedBy(step string, change ...string) lesson.Action {
	a := kit.SwitchStorage(step, "switch")
	a.Kubectl = kit.Then(kit.FromManifest("kubectl apply", step, "switch"), kit.Kubectl("sleep 1"))
	a.Change = kit.Lines(change...)
	return a
}

// removedBy takes the old version out of spec.versions, by a step's manifest, which may change the CRD in more than that: the
// operations of a JSON patch do the same by hand.
func removedBy(step string, also ...string) lesson.Action {
	return lesson.Action{
		ID: "remove",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.Replacing(ctx, env, newVersion, func() error { return kit.ApplyCRD(ctx, env, step, "remove") })
		},
		Kubectl: kit.Then(kit.PatchCRD(strings.Join(append([]string{kit.RemoveOldest}, also...), ",")), kit.Kubectl("sleep 2")),
		Change:  kit.Lines("- spec.versions[v1alpha1]"),
	}
}

// patchCommand is kubectl's merge patch of an object at a version.
func patchCommand(version, object, patch string) string {
	return "kubectl patch widgets." + version + ".GROUP " + object + " --type=merge -p '" + patch + "'"
}

// merge is a merge patch of an object.
type merge struct{ object, patch string }

// mend changes several objects at a version, by merge patches.
func mend(version string, patches []merge, change ...string) lesson.Action {
	var commands []string
	for _, m := range patches {
		commands = append(commands, patchCommand(version, m.object, m.patch))
	}
	return lesson.Action{
		ID: "mend",
		Do: func(ctx context.Context, env *lesson.Env) error {
			for _, m := range patches {
				if err := kit.Patch(ctx, env, version, m.object, m.patch); err != nil {
					return err
				}
			}
			return nil
		},
		Kubectl: kit.Kubectl(commands...),
		Change:  kit.Lines(change...),
	}
}

// patchOf is the first such merge patch at the new version in the step; nil where nobody sent it.
func patchOf(e lesson.Evidence, object, patch string) *evidence.Exchange {
	about := e.About(http.MethodPatch, newVersion, object)
	return e.Find(func(x evidence.Exchange) bool { return about(x) && x.Body == patch && !x.DryRun() })
}

// refusedFor checks that a request was sent, and refused as invalid because of a field.
func refusedFor(field string, x *evidence.Exchange) lesson.Outcome {
	want := fmt.Sprintf("%d, because of %s", http.StatusUnprocessableEntity, field)
	if x == nil {
		return lesson.Holds(false, want, "nobody asked")
	}
	return kit.Holds(x.Status == http.StatusUnprocessableEntity && lesson.HasCause(*x, field), want, fmt.Sprint(kit.Answer(*x), " ", x.Causes))
}

// storageIs checks which version is the storage version.
func storageIs(version string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome { return lesson.Expected(version, e.After.StorageVersion()) }
}

// flip makes the old version the storage version again, by a manifest, and waits until that is in effect.
func flip(step, action string) lesson.Action {
	return lesson.Action{
		ID: action,
		Do: func(ctx context.Context, env *lesson.Env) error {
			if err := kit.ApplyCRD(ctx, env, step, action); err != nil {
				return err
			}
			_, err := kit.Rewriter(env).WaitInEffect(ctx, oldVersion, nil)
			return err
		},
		Kubectl: kit.Then(kit.FromManifest("kubectl apply", step, action), kit.Kubectl("sleep 1")),
		Change:  kit.Lines("~ spec.versions[v1alpha1].storage  true"),
	}
}

// quietly does an action without recording its requests: they are too many to be looked at.
func quietly(a lesson.Action) lesson.Action {
	do := a.Do
	a.Do = func(ctx context.Context, env *lesson.Env) error {
		quiet := *env
		quiet.Client = env.Client.Unrecorded()
		err := do(ctx, &quiet)
		env.Rewrite = quiet.Rewrite
		return err
	}
	return a
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
