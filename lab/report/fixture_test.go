package report

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// The fixture is a run of a small track as a session would have recorded it: a step that went well, a refusal that the
// lesson wants, a check that the server contradicts, and a step that was not applied.

const (
	oldView  = `{"apiVersion":"lab.example.com/v1alpha1","kind":"Widget","metadata":{"name":"alpha","resourceVersion":"12","managedFields":[]},"spec":{"color":"red","size":1}}`
	newView  = `{"apiVersion":"lab.example.com/v1beta1","kind":"Widget","metadata":{"name":"alpha","resourceVersion":"12","managedFields":[]},"spec":{"color":"red","size":1}}`
	oldBytes = `{"apiVersion":"lab.example.com/v1alpha1","kind":"Widget","metadata":{"name":"alpha"},"spec":{"color":"red","size":1}}`
	foxOld   = `{"apiVersion":"lab.example.com/v1alpha1","kind":"Widget","metadata":{"name":"foxtrot","resourceVersion":"21"},"spec":{"color":"blue","size":3}}`
	foxNew   = `{"apiVersion":"lab.example.com/v1beta1","kind":"Widget","metadata":{"name":"foxtrot","resourceVersion":"21"},"spec":{"color":"blue","size":3,"tier":"standard"}}`
	foxBytes = `{"apiVersion":"lab.example.com/v1beta1","kind":"Widget","metadata":{"name":"foxtrot"},"spec":{"color":"blue","size":3,"tier":"standard"}}`
)

func view(object string) *evidence.View {
	return &evidence.View{Status: 200, Object: json.RawMessage(object)}
}

func fixtureObject(name, revision string, mod int64, version string, size int, old, new, bytes string) *evidence.Object {
	return &evidence.Object{Namespace: "crdlab", Name: name, ResourceVersion: revision,
		Views: map[string]*evidence.View{"v1alpha1": view(old), "v1beta1": view(new)},
		Stored: &evidence.Value{Key: "/registry/lab.example.com/widgets/crdlab/" + name, APIVersion: "lab.example.com/" + version,
			ModRevision: mod, Size: size, Value: json.RawMessage(bytes)},
		Managers: []evidence.Manager{{Manager: "crdlab", Operation: "Update", APIVersion: "lab.example.com/v1alpha1"}},
	}
}

func fixtureCRD(storageVersion string, stored ...string) *evidence.CRD {
	crd := &evidence.CRD{Name: "widgets.lab.example.com", UID: "4f1c", Generation: 4, Strategy: "None", StoredVersions: stored,
		Conditions: map[string]string{"Established": "True"}}
	for _, v := range []string{"v1alpha1", "v1beta1"} {
		crd.Versions = append(crd.Versions, evidence.Version{Name: v, Served: true, Storage: v == storageVersion, Deprecated: v == "v1alpha1"})
	}
	return crd
}

// before the switch of the storage version.
func before() *evidence.Observation {
	return &evidence.Observation{After: "before", Revision: 18, CRD: fixtureCRD("v1alpha1", "v1alpha1"),
		Stored:  evidence.Stored{Access: true, Total: 5, ByVersion: map[string]int{"v1alpha1": 5}},
		Objects: []*evidence.Object{fixtureObject("alpha", "12", 12, "v1alpha1", 458, oldView, newView, oldBytes)}}
}

// settled is after the switch.
func settled() *evidence.Observation {
	return &evidence.Observation{After: "settled", Revision: 21, CRD: fixtureCRD("v1beta1", "v1alpha1", "v1beta1"),
		Stored: evidence.Stored{Access: true, Total: 6, ByVersion: map[string]int{"v1alpha1": 5, "v1beta1": 1}},
		Objects: []*evidence.Object{
			fixtureObject("alpha", "12", 12, "v1alpha1", 458, oldView, newView, oldBytes),
			fixtureObject("foxtrot", "21", 21, "v1beta1", 476, foxOld, foxNew, foxBytes),
		}}
}

const (
	definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.lab.example.com"
	collection = "/apis/lab.example.com/v1alpha1/namespaces/crdlab/widgets"
)

// fixture is the run, not yet ended: result failed.
func fixture() *lab.State {
	track := &lesson.Track{ID: "migrate", Strategy: "None", Versions: []string{"v1alpha1", "v1beta1"}, Plural: "widgets", Subject: "alpha",
		Steps: []lesson.Step{{ID: "switch-storage"}, {ID: "attempt-removal", Actions: []lesson.Action{{ID: "remove", Expect: lesson.Expect{Refused: true, Status: 422}}}}, {ID: "stop-serving"}, {ID: "verify"}}}
	s := &lab.State{Track: track, Cluster: cluster.Info{Type: "embedded", Version: "1.37.2"},
		Resource: storage.Resource{Group: "lab.example.com", Plural: "widgets"}, Namespace: "crdlab", Widgets: 5,
		StartedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Live: settled()}
	s.Steps = []*lab.Step{switchStep(), refusedStep(), failedStep(), {ID: "verify", Index: 3, Title: "Verify", Phase: lab.Ready}}
	for i, step := range s.Steps {
		step.Lesson = &track.Steps[i]
	}
	return s
}

func switchStep() *lab.Step {
	return &lab.Step{ID: "switch-storage", Index: 0, Title: "Switch the storage version", Phase: lab.Applied, Result: lesson.Passed,
		Briefing: "From now on the API server *writes* `v1beta1`. The five widgets that exist stay as they are, byte for byte.\n\nA second paragraph of the briefing is too long for a terminal.",
		Question: "What will v1beta1 show for alpha's `spec.tier` after the switch?",
		Options: []lab.Option{{ID: "default", Text: "standard: the default is filled in on read"},
			{ID: "nothing", Text: "nothing: alpha's bytes are still v1alpha1"}},
		Given: "default", Answer: "nothing",
		Explanation: "Two kinds of widget now live side by side. A controller that reads **spec.tier** treats six objects of one kind in two ways, by when they were created.",
		Actions: []lab.Action{
			{ID: "storage", Exchanges: []int{0, 1}, Kubectl: []string{"kubectl apply -f crd.yaml"}, Done: true},
			{ID: "foxtrot", Exchanges: []int{2, 3, 4}, Done: true},
		},
		Exchanges: []evidence.Exchange{
			{Actor: evidence.ByStep, Method: "PATCH", Path: definition + "?fieldManager=crdlab", ContentType: evidence.MergePatch, Status: 200, DurationMS: 3.4},
			{Actor: evidence.ByObserver, Method: "GET", Path: definition, Status: 200, DurationMS: 0.4},
			{Actor: evidence.ByStep, Method: "POST", Path: "/apis/lab.example.com/v1beta1/namespaces/crdlab/widgets", ContentType: evidence.JSON, Status: 201, DurationMS: 2.2},
			{Actor: evidence.ByStep, Method: "GET", Path: collection + "/alpha", Status: 200, DurationMS: 0.8, Warnings: []string{"lab.example.com/v1alpha1 Widget is deprecated; use lab.example.com/v1beta1 Widget"}},
			{Actor: evidence.ByStep, Method: "GET", Path: collection + "/bravo", Status: 200, DurationMS: 0.7, Warnings: []string{"lab.example.com/v1alpha1 Widget is deprecated; use lab.example.com/v1beta1 Widget"}},
		},
		Checks: []lab.Check{
			{ID: "record", Title: "storedVersions is [v1alpha1 v1beta1]", Outcome: lesson.Expected([]string{"v1alpha1", "v1beta1"}, []string{"v1alpha1", "v1beta1"})},
			{ID: "bytes", Title: "alpha's bytes are unchanged", Outcome: lesson.Holds(true, "mod revision 12", "mod revision 12")},
		},
		Before: before(), After: settled(), Observations: []*evidence.Observation{before(), settled()}, Took: 310 * time.Millisecond}
}

func refusedStep() *lab.Step {
	return &lab.Step{ID: "attempt-removal", Index: 1, Title: "Attempt removal", Phase: lab.Applied, Result: lesson.Passed,
		Briefing: "Take v1alpha1 out of spec.versions.",
		Actions:  []lab.Action{{ID: "remove", Exchanges: []int{0}, Done: true}},
		Exchanges: []evidence.Exchange{{Actor: evidence.ByStep, Method: "PATCH", Path: definition, ContentType: evidence.JSONPatch, Status: 422, Reason: "Invalid",
			Message: "the whole text", DurationMS: 2.6, Causes: []evidence.Cause{{Field: "status.storedVersions[0]", Reason: "FieldValueInvalid",
				Message: `Invalid value: "v1alpha1": missing from spec.versions; v1alpha1 was previously a storage version, and must remain in spec.versions`}}}},
		Rewrite: &rewrite.Result{Target: "v1beta1", Written: 5},
		Before:  settled(), After: settled(), Took: 20 * time.Millisecond}
}

func failedStep() *lab.Step {
	return &lab.Step{ID: "stop-serving", Index: 2, Title: "Stop serving v1alpha1", Phase: lab.Applied, Result: lesson.Failed, Briefing: "Set served to false.",
		Err:     errors.New("PATCH " + definition + ": the server answered 500 InternalError: etcd is gone"),
		Actions: []lab.Action{{ID: "unserve", Exchanges: []int{0}}},
		Exchanges: []evidence.Exchange{{Actor: evidence.ByStep, Method: "PATCH", Path: definition, ContentType: evidence.JSONPatch, Status: 500,
			Reason: "InternalError", Message: "etcd is gone", DurationMS: 9.9}},
		Checks: []lab.Check{
			{ID: "gone", Title: "v1alpha1 answers 404", Outcome: lesson.Holds(false, "404", "200")},
			{ID: "bytes", Title: "the bytes stay", Outcome: lesson.Outcome{Result: lesson.Skipped, Reason: "the stored values cannot be read on this cluster"}},
		},
		Hints:  []string{"The server has lost its etcd: *reset* the lab, and apply the step again. Nothing of the cluster was kept, and nothing need be."},
		Before: settled(), After: settled(), Took: 1200 * time.Millisecond}
}

const longCommand = "kubectl get widgets.v1beta1.lab.example.com --all-namespaces -o yaml | kubectl patch -f - --type=merge -p '{}' | tee log"

func fixtureVerdict() *verdict.Verdict {
	return &verdict.Verdict{CRD: "widgets.lab.example.com", Drop: []string{"v1alpha1"}, Target: "v1beta1", Verdict: verdict.Incomplete,
		Summary: "the migration away from v1alpha1 is not complete", At: "2026-05-01T12:00:00Z",
		CRDUID: "4f1c", CRDGeneration: 4, Revision: 21, Findings: []verdict.Finding{
			{ID: "storage-version", Result: verdict.Pass, Summary: "v1beta1 is the storage version", Remedy: "nothing to do"},
			{ID: "stored-objects", Result: verdict.Fail, Summary: "5 of 6 objects are stored at v1alpha1", Evidence: []string{"crdlab/alpha", "crdlab/bravo"},
				Remedy: longCommand},
			{ID: "stored-versions", Result: verdict.Fail, Summary: "status.storedVersions is [v1alpha1 v1beta1]", Evidence: []string{"it lists v1alpha1"},
				Remedy: "make the API server write the stored objects again before anything is taken out of the record"},
			{ID: "served", Result: verdict.Warn, Summary: "v1alpha1 is served", Remedy: "# first see who still asks for it, in the server's log of requests; then stop serving it\nkubectl patch crd widgets.lab.example.com"},
			{ID: "owner-references", Result: verdict.Warn, Summary: "one object is owned through v1alpha1", Evidence: []string{"crdlab/charlie"}},
			{ID: "round-trip", Result: verdict.Unclear, Summary: "not tried: the server refuses dry runs"},
		}}
}
