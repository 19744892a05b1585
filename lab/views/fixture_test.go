package views

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// The states of this file are made up, so that screens can be compared byte by byte. What is in them looks like what a
// session shows; that a session does is tested with one.

const older, newer = "v1alpha1", "v1beta1"

var titles = []string{"Create v1alpha1", "Add v1beta1", "Deprecate v1alpha1", "Switch the storage version", "Rewrite every object",
	"Attempt removal", "Trim storedVersions", "Stop serving", "Relabel managedFields", "Remove v1alpha1", "Verify"}

var fixtureTrack = func() *lesson.Track {
	t := &lesson.Track{ID: "migrate", Group: lesson.Migration, Strategy: "None", Versions: []string{older, newer}, Plural: "widgets", Minutes: 25, Subject: "alpha"}
	for i := range titles {
		t.Steps = append(t.Steps, lesson.Step{ID: fmt.Sprintf("step-%d", i+1)})
	}
	t.Steps[3].Show = "foxtrot"
	t.Steps[5].Actions = []lesson.Action{{ID: "remove", Expect: lesson.Expect{Refused: true}}}
	return t
}()

var fixtureResource = storage.Resource{Group: "lab.example.com", Plural: "widgets"}

// widget makes an object as it is read at both versions and as it is stored.
func widget(name string, revision int64, color string, size int, stored, tier string) *evidence.Object {
	o := &evidence.Object{Namespace: "crdlab", Name: name, ResourceVersion: fmt.Sprint(revision), Views: map[string]*evidence.View{}}
	raw := func(version string, bytes bool) json.RawMessage {
		meta := map[string]any{"name": name, "namespace": "crdlab", "generation": 1, "creationTimestamp": "2026-11-30T09:54:09Z",
			"uid": "3f0c9a52-1c7e-4e0b-9d0f-" + fmt.Sprintf("%012x", len(name)*7919), "labels": map[string]any{"app.kubernetes.io/managed-by": "crdlab"},
			"managedFields": []any{map[string]any{"manager": "crdlab", "operation": "Update", "apiVersion": "lab.example.com/" + older,
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}, "f:color": map[string]any{}, "f:size": map[string]any{}}}}}}
		if !bytes {
			meta["resourceVersion"] = fmt.Sprint(revision)
		}
		spec := map[string]any{"color": color, "size": size}
		if tier != "" && version == newer {
			spec["tier"] = tier
		}
		b, err := json.Marshal(map[string]any{"apiVersion": "lab.example.com/" + version, "kind": "Widget", "metadata": meta, "spec": spec})
		if err != nil {
			panic(err)
		}
		return b
	}
	for _, v := range []string{older, newer} {
		o.Views[v] = &evidence.View{Status: 200, Object: raw(v, false)}
	}
	value := raw(stored, true)
	o.Stored = &evidence.Value{Key: "/registry/lab.example.com/widgets/crdlab/" + name, APIVersion: "lab.example.com/" + stored,
		ModRevision: revision, Size: len(value), Value: value}
	return o
}

// seen makes an observation of a CRD with both versions.
func seen(storageVersion string, storedVersions []string, total int, objects ...*evidence.Object) *evidence.Observation {
	o := &evidence.Observation{Revision: 40, CRD: &evidence.CRD{Name: fixtureResource.String(), Strategy: "None", StoredVersions: storedVersions,
		Versions: []evidence.Version{
			{Name: older, Served: true, Storage: storageVersion == older, Deprecated: true, Fields: []string{"color", "size"}},
			{Name: newer, Served: true, Storage: storageVersion == newer, Fields: []string{"color", "size", "tier"}},
		}}}
	o.Stored = evidence.Stored{Access: true, Total: total, ByVersion: map[string]int{}}
	o.Objects = objects
	for _, x := range objects {
		o.Stored.ByVersion[x.StoredVersion()]++
	}
	return o
}

var (
	others = func(stored, tier string, from int64) []*evidence.Object {
		return []*evidence.Object{widget("bravo", from+1, "green", 2, stored, tier), widget("charlie", from+2, "black", 3, stored, tier),
			widget("delta", from+3, "white", 4, stored, tier), widget("echo", from+4, "grey", 5, stored, tier)}
	}
	oldAlpha = widget("alpha", 12, "red", 1, older, "")
	newAlpha = widget("alpha", 31, "red", 1, newer, "standard")
	foxtrot  = widget("foxtrot", 21, "blue", 6, newer, "standard")

	fiveOld  = seen(older, []string{older}, 5, append([]*evidence.Object{oldAlpha}, others(older, "", 12)...)...)
	sixMixed = seen(newer, []string{older, newer}, 6, append(append([]*evidence.Object{oldAlpha}, others(older, "", 12)...), foxtrot)...)
	sixNew   = seen(newer, []string{older, newer}, 6, append(append([]*evidence.Object{newAlpha}, others(newer, "standard", 31)...), foxtrot)...)
)

func exchange(seq int, actor evidence.Actor, method, path, contentType, body string, status int, ms float64) evidence.Exchange {
	return evidence.Exchange{Seq: seq, Actor: actor, Method: method, Path: path, ContentType: contentType, Body: body, Status: status, DurationMS: ms}
}

var fixtureLog = func() []evidence.Exchange {
	crd := evidence.DefinitionPath(fixtureResource)
	log := []evidence.Exchange{
		exchange(1, evidence.ByStep, "PATCH", crd, evidence.MergePatch, `{"spec":{"versions":[]}}`, 200, 3.1),
		exchange(2, evidence.ByStep, "GET", evidence.ObjectPath(fixtureResource, older, "crdlab", "alpha"), "", "", 200, 0.8),
		exchange(3, evidence.ByProbe, "GET", evidence.ObjectPath(fixtureResource, newer, "crdlab", "foxtrot"), "", "", 404, 0.7),
		exchange(4, evidence.ByHand, "GET", evidence.ObjectPath(fixtureResource, newer, "crdlab", "alpha"), "", "", 200, 0.7),
		exchange(5, evidence.ByStep, "POST", evidence.CollectionPath(fixtureResource, newer, "crdlab")+"?fieldManager=crdlab", evidence.JSON, `{"metadata":{"name":"foxtrot"}}`, 201, 12.2),
		exchange(6, evidence.ByStep, "GET", evidence.CollectionPath(fixtureResource, older, "crdlab"), "", "", 200, 1.4),
	}
	log[1].Warnings = []string{"lab.example.com/v1alpha1 Widget is deprecated; use lab.example.com/v1beta1 Widget"}
	log[2].Reason, log[2].Message = "NotFound", `widgets.lab.example.com "foxtrot" not found`
	log[5].Warnings = log[1].Warnings
	return log
}()

// at makes a state in which the learner is at a step, the ones before it passed.
func at(step int, phase lab.Phase, live *evidence.Observation) *lab.State {
	st := &lab.State{Track: fixtureTrack, Cluster: cluster.Info{Type: "embedded", Version: "1.37.2"}, Resource: fixtureResource, Namespace: "crdlab",
		Widgets: 5, Current: step, Live: live, Log: fixtureLog, Kubeconfig: "/home/ada/.local/state/crdlab/7f3a/kubeconfig"}
	for i, t := range titles {
		s := &lab.Step{Lesson: &fixtureTrack.Steps[i], Index: i, ID: fixtureTrack.Steps[i].ID, Title: t}
		if i < step {
			s.Phase, s.Result, s.Before, s.After = lab.Applied, lesson.Passed, fiveOld, fiveOld
			s.Explanation = "It was so."
			s.Exchanges = fixtureLog[:2]
		}
		st.Steps = append(st.Steps, s)
	}
	s := st.Steps[step]
	s.Phase, s.Before = phase, live
	s.Briefing = "From now on the server shall write v1beta1. The 5 widgets that exist stay as they are: nobody touches their bytes. A new one, `foxtrot`, is created *right after* the switch."
	s.Question = "What will v1beta1 show for alpha's `spec.tier` after the switch?"
	s.Options = []lab.Option{{ID: "standard", Text: "standard: the default is filled in on read"},
		{ID: "nothing", Text: "nothing: alpha's bytes are still v1alpha1"}, {ID: "error", Text: "an error: alpha must be rewritten first"}}
	s.Given = "nothing"
	s.Change = []string{"- spec.versions[v1alpha1].storage  true", "+ spec.versions[v1beta1].storage   true", "+ foxtrot  at v1beta1"}
	s.Actions = []lab.Action{{ID: "switch", Kubectl: []string{
		`kubectl patch crd widgets.lab.example.com --type=json -p '[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]'`,
		"kubectl apply -f - <<'EOF'\napiVersion: lab.example.com/v1beta1\nkind: Widget\nmetadata:\n  name: foxtrot\nEOF"}}}
	s.Checks = []lab.Check{{ID: "record", Title: "storedVersions is [v1alpha1 v1beta1]"}, {ID: "old-bytes", Title: "alpha's value in etcd is unchanged: mod revision 12"}}
	fixtureTrack.Steps[3].Checks = []lesson.Check{{ID: "record", Kind: lesson.Done}, {ID: "old-bytes", Kind: lesson.Invariant}}
	return st
}

func passed(titles ...string) []lab.Check {
	var out []lab.Check
	for _, t := range titles {
		out = append(out, lab.Check{ID: t, Title: t, Outcome: lesson.Outcome{Result: lesson.Passed}})
	}
	return out
}

func before() *lab.State { return at(3, lab.Ready, fiveOld) }

func applied() *lab.State {
	st := at(3, lab.Applied, sixMixed)
	s := st.Steps[3]
	s.Before, s.After, s.Result, s.Answer, s.Took = fiveOld, sixMixed, lesson.Passed, "nothing", 480*time.Millisecond
	s.Checks = passed("storedVersions is [v1alpha1 v1beta1]", "foxtrot, created afterwards, is stored at v1beta1 with tier: standard", "alpha's value in etcd is unchanged: mod revision 12")
	s.Explanation = "The *storage version* is an order for the next write. It moves nothing.\n\nfoxtrot has `tier: standard` and alpha has none: a controller that reads tier treats objects of one kind in two ways, by the day on which they were created."
	s.Exchanges = fixtureLog
	return st
}

// branching is a step off which accidents branch, of which one cannot be taken.
func branching() *lab.State {
	st := before()
	own := *st.Steps[3].Lesson
	own.WhatIf = []string{"early-trim", "stuck-deletion", "webhook"}
	st.Steps[3].Lesson = &own
	return st
}

// accident is a step of what branched off the seventh of another track.
func accident(m *program) {
	m.branch = &branch{from: m.session, title: "Trimmed too early, and then removed", place: place{track: "migrate", number: 7, step: "step-7", title: titles[6]}}
}

func wrong() *lab.State {
	st := applied()
	st.Steps[3].Given = "standard"
	st.Steps[3].ByHand = true
	return st
}

func refused() *lab.State {
	st := at(5, lab.Applied, sixNew)
	s := st.Steps[5]
	s.Result, s.Answer, s.Given = lesson.Passed, "error", "error"
	x := exchange(7, evidence.ByStep, "PATCH", evidence.DefinitionPath(fixtureResource), evidence.ApplyPatch, "{}", 422, 2.6)
	x.Reason, x.Message = "Invalid", "CustomResourceDefinition is invalid"
	x.Causes = []evidence.Cause{{Field: "status.storedVersions[0]", Message: `Invalid value: "v1alpha1": missing from spec.versions; v1alpha1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1alpha1 and removes v1alpha1 from status.storedVersions`}}
	s.Exchanges = []evidence.Exchange{x}
	s.Actions = []lab.Action{{ID: "remove", Exchanges: []int{0}, Done: true}}
	st.Log = append(slices.Clone(fixtureLog), x)
	s.Checks = passed("0 of 6 objects are stored at v1alpha1: the server does not know it")
	s.Explanation = "Only a person, or a migrator, can say so. That is the next step."
	return st
}

func unwantedRefusal() *lab.State {
	st := at(3, lab.Applied, fiveOld)
	s := st.Steps[3]
	s.Result, s.Err = lesson.Failed, errors.New("create foxtrot: the server answered 500 InternalError: conversion webhook failed: dial tcp 10.0.0.1:443: connection refused")
	x := exchange(7, evidence.ByStep, "POST", evidence.CollectionPath(fixtureResource, newer, "crdlab"), evidence.JSON, "{}", 500, 2.6)
	x.Reason, x.Message = "InternalError", "conversion webhook failed: dial tcp 10.0.0.1:443: connection refused"
	s.Exchanges = []evidence.Exchange{x}
	s.Hints = []string{"The webhook does not listen. Start it, then try again."}
	s.Checks = append(passed("storedVersions is [v1alpha1 v1beta1]"),
		lab.Check{ID: "foxtrot", Title: "foxtrot is stored at v1beta1", Outcome: lesson.Outcome{Result: lesson.Failed, Want: "v1beta1", Got: "nothing is stored"}},
		lab.Check{ID: "bytes", Title: "the bytes are unchanged", Outcome: lesson.Outcome{Result: lesson.Skipped, Reason: "the stored values cannot be read on this cluster"}})
	return st
}

func rewriting() *lab.State {
	live := seen(newer, []string{older, newer}, 2000, sixNew.Objects...)
	live.Stored.ByVersion = map[string]int{older: 716, newer: 1284}
	live.ObjectsOmitted = 1994
	st := at(4, lab.Running, live)
	st.Steps[4].Before = seen(newer, []string{older, newer}, 2000, sixMixed.Objects...)
	st.Progress = &rewrite.Progress{Done: 1284, Total: 2000, Conflicts: 2, Rate: 212, Left: 3400 * time.Millisecond, BytesBefore: 588_000, BytesAfter: 641_000}
	st.Doing = "applying Rewrite every object"
	return st
}

func paused() *lab.State { st := rewriting(); st.Paused = true; return st }

func troubled() *lab.State {
	st := before()
	st.Trouble = errors.New("GET /apis/lab.example.com/v1beta1/widgets: no answer: connection refused")
	st.Undone = []string{"step-3"}
	st.Steps[3].Hints = []string{"v1alpha1 is no longer deprecated."}
	return st
}

// waiting is a step whose request is not answered.
func waiting() *lab.State {
	st := at(3, lab.Running, fiveOld)
	st.Doing = "applying Switch the storage version"
	st.Waiting = &evidence.Waiting{Actor: evidence.ByStep, Method: "PATCH", Path: evidence.DefinitionPath(fixtureResource), Since: noon.Add(-7 * time.Second)}
	return st
}

// outage is a rewrite that waits for a server which is gone.
func outage() *lab.State {
	st := rewriting()
	p := *st.Progress
	p.Rate, p.Waiting = 0, "waits for the server, for 1m0s at the most: PATCH "+evidence.ObjectPath(fixtureResource, newer, "crdlab", "widget-1284")+": no answer: dial tcp 127.0.0.1:6443: connect: connection refused"
	st.Progress = &p
	st.Trouble = errors.New("GET " + evidence.DefinitionPath(fixtureResource) + ": no answer: dial tcp 127.0.0.1:6443: connect: connection refused: does the cluster still run, and is it reached from here? (the lab keeps asking)")
	return st
}

func unserved() *lab.State {
	live := seen(newer, []string{newer}, 6, sixNew.Objects...)
	live.CRD.Versions[0].Served = false
	live.Objects = slices.Clone(live.Objects)
	alpha := *newAlpha
	alpha.Views = map[string]*evidence.View{older: {Status: 404, Message: "404 page not found"}, newer: newAlpha.Views[newer]}
	live.Objects[0] = &alpha
	st := at(7, lab.Applied, live)
	s := st.Steps[7]
	s.Before, s.After, s.Result, s.Answer = sixNew, live, lesson.Passed, "nothing"
	s.Checks = passed("v1alpha1 is in spec.versions, and not served")
	return st
}

func verified() *lab.State {
	live := seen(newer, []string{newer}, 6, sixNew.Objects...)
	live.CRD.Versions = live.CRD.Versions[1:]
	st := at(10, lab.Applied, live)
	s := st.Steps[10]
	s.Question, s.Options, s.Given, s.Result = "", nil, "", lesson.Passed
	s.Verdict = &verdict.Verdict{Verdict: verdict.Complete, Drop: []string{older}, Findings: []verdict.Finding{
		{ID: "storage-version", Result: verdict.Pass, Summary: "every write is stored at v1beta1"},
		{ID: "stored-objects", Result: verdict.Pass, Summary: "none of 6 objects is stored at a version that goes"},
		{ID: "managed-fields", Result: verdict.Warn, Summary: "1 entry names v1alpha1", Remedy: "relabel it: crdlab rewrite widgets.lab.example.com"},
	}}
	s.Rewrite = &rewrite.Result{Written: 5, Unchanged: 1}
	s.Checks = passed("the verdict is complete")
	return st
}

func empty() *lab.State {
	st := at(0, lab.Ready, &evidence.Observation{Stored: evidence.Stored{Access: true}})
	st.Steps[0].Question, st.Steps[0].Options = "", nil
	return st
}

// hostile holds what an object could bring to break the screen.
func hostile() *lab.State {
	o := widget("alpha", 12, "red\x1b[2J\x1b]0;gone\a\nnext\tline", 1, older, "")
	wide := widget("bravo", 13, strings.Repeat("漢字", 40), 1, older, "👩‍👩‍👧‍👦🏳️‍🌈e\u0301\u202e")
	live := seen(older, []string{older}, 2, o, wide)
	st := at(3, lab.Ready, live)
	x := fixtureLog[1]
	x.Warnings = []string{"漢字\x1b[31m warning\r\nwith lines"}
	x.Path += "/\x1b[2Jstatus漢字漢字漢字漢字漢字漢字漢字漢字"
	st.Log = []evidence.Exchange{x}
	st.Steps[3].Briefing = "A name: \x1b[2J" + strings.Repeat("漢字", 60) + " and more\n\n- an item\n- another\n\n```\ncode " + strings.Repeat("x", 200) + "\n```"
	return st
}

// noAccess is a cluster whose etcd is out of reach.
func noAccess() *lab.State {
	live := *fiveOld
	live.Stored, live.Objects = evidence.Stored{}, nil
	for _, o := range fiveOld.Objects {
		unread := *o
		unread.Stored = nil
		live.Objects = append(live.Objects, &unread)
	}
	return at(3, lab.Ready, &live)
}

func fixtureLab() *Lab {
	l := &Lab{ClusterName: "embedded", Report: func(*lab.State) (string, error) { return "report.md", nil }, Tracks: []TrackInfo{
		{ID: "migrate", Group: lesson.Migration, Title: "migrate", Summary: "v1alpha1 to v1beta1, every object with it", Strategy: "None", Minutes: 25, Steps: titles, Versions: []string{older, newer}},
		{ID: "webhook", Group: lesson.Webhook, Title: "webhook", Summary: "two shapes and a converter", Strategy: "Webhook", Minutes: 35, Versions: []string{older, newer}, Unavailable: "this cluster cannot call the lab"},
	}}
	for _, p := range []string{"early-trim: storedVersions trimmed too soon", "none-rename: a renamed field is lost", "flip-back: storage goes back",
		"downgrade: the old release meets the new bytes", "stuck-deletion: a finalizer and a converter that is gone"} {
		name, what, _ := strings.Cut(p, ": ")
		l.Tracks = append(l.Tracks, TrackInfo{ID: name, Group: lesson.Pitfalls, Title: name, Summary: what, Minutes: 5, Versions: []string{older, newer}, Steps: []string{"One", "Two"}})
	}
	return l
}

// fixture is a settled screen.
type fixture struct {
	name  string
	state func() *lab.State // nil for the start screen
	then  func(*program)    // what the learner did
}

var fixtures = []fixture{
	{"before", before, nil},
	{"applied", applied, nil},
	{"wrong", wrong, nil},
	{"refused", refused, nil},
	{"unwanted", unwantedRefusal, nil},
	{"rewriting", rewriting, nil},
	{"paused", paused, nil},
	{"back", applied, func(m *program) { m.lookBack(2) }},
	{"troubled", troubled, nil},
	{"waiting", waiting, nil},
	{"outage", outage, nil},
	{"unserved", unserved, nil},
	{"verified", verified, nil},
	{"empty", empty, nil},
	{"hostile", hostile, nil},
	{"hostile-wide", hostile, func(m *program) { m.sight.selected = "bravo" }},
	{"no-access", noAccess, nil},
	{"managers", applied, func(m *program) { m.sight.managers = true }},
	{"zoom", applied, func(m *program) { m.zoom(m.screen()) }},
	{"zoom-log", refused, func(m *program) {
		m.sight.focus, m.sight.shown = focus{kind: onLog}, focus{kind: onLog}
		m.zoom(m.screen())
	}},
	{"both", applied, func(m *program) { m.sight.focus, m.sight.shown = focus{kind: onBoth}, focus{kind: onBoth} }},
	{"requests", refused, func(m *program) { m.sight.focus, m.sight.shown = focus{kind: onLog}, focus{kind: onLog} }},
	{"by-hand", before, func(m *program) { m.dialogs = []dialog{&byHand{step: m.current()}} }},
	{"by-hand-wrong", troubled, func(m *program) { m.dialogs = []dialog{&byHand{step: m.current()}} }},
	{"help", before, func(m *program) { m.dialogs = []dialog{help{}} }},
	{"go-to", before, func(m *program) { m.dialogs = []dialog{&goingTo{at: 3}} }},
	{"what-if", branching, func(m *program) { m.dialogs = []dialog{&whatIf{at: 1}} }},
	{"branch", before, accident},
	{"branch-end", func() *lab.State { return last(applied()) }, accident},
	{"leaving", func() *lab.State { return at(3, lab.Running, fiveOld) }, func(m *program) {
		accident(m)
		m.call = &call{"applying step-4", func() {}}
		m.dialogs = []dialog{leavingBranch{}}
	}},
	{"reset", before, func(m *program) { m.dialogs = []dialog{resetting{}} }},
	{"playing", before, func(m *program) {
		m.player = &player{caption: "chooses 1: nothing moves; it is an order for the next write"}
	}},
	{"playing-paused", applied, func(m *program) { m.player = &player{caption: "applied: Switch the storage version", paused: true} }},
	{"playing-help", applied, func(m *program) { m.player, m.dialogs = &player{caption: "reads on"}, []dialog{help{}} }},
	{"playing-failed", unwantedRefusal, func(m *program) {
		m.player = &player{}
		m.player.fail(ErrStepFailed)
	}},
	{"start", nil, func(m *program) {
		m.start.heard(Phase{Name: "certificates", Done: true, Took: 20 * time.Millisecond}, m.clock())
		m.start.heard(Phase{Name: "etcd"}, m.clock().Add(-300*time.Millisecond))
	}},
	{"start-live", nil, func(m *program) {
		m.start.heard(Phase{Name: "etcd", Done: true, Took: 220 * time.Millisecond}, m.clock())
		m.start.live = true
	}},
	{"start-left", nil, func(m *program) {
		m.start.live = true
		m.lab.Tracks[0].Left = Left{Step: 4, Right: 2, Given: 3}
		m.lab.Tracks[len(m.lab.Tracks)-1].Left = Left{Done: true, Right: 1, Given: 1}
	}},
	{"start-failed", nil, func(m *program) {
		m.start.err = errors.New("start etcd: listen tcp 127.0.0.1:2379: address in use\nEnd the other lab, or use --cluster existing.")
	}},
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// show makes the program show a fixture.
func show(t testing.TB, f fixture, theme string, w, h int) *program {
	t.Helper()
	t.Setenv("HOME", "/home/ada")
	m, err := newProgram(context.Background(), fixtureLab(), Options{Theme: theme, Profile: colorprofile.TrueColor, Width: w, Height: h})
	if err != nil {
		t.Fatal(err)
	}
	m.clock = func() time.Time { return noon }
	if f.state != nil {
		m.start.live = true
		m.begin(&fixedSession{state: f.state()})
		m.show(m.session.State())
		m.ink()
	}
	if f.then != nil {
		f.then(m)
	}
	return m
}
