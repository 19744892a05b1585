// Package lesson is the form of what is taught: tracks, their steps, and what a step does, asks and proves. The lessons
// themselves are elsewhere; this package knows no CRD and no version.
package lesson

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
	"github.com/crdlab/crdlab/manifests"
)

// Track is an ordered list of steps on one CRD.
type Track struct {
	ID       string
	Group    Group
	Strategy string   // of conversion, for the list of tracks; what a run shows is read from the CRD
	Versions []string // in the order of their age: the place of a version gives it its colour
	Plural   string   // of the CRD; its group is the learner's
	Minutes  int      // about how long it takes a person
	Needs    []Needs  // without which it cannot be taken at all; what only some checks need stands with them
	Steps    []Step
	Wrong    []Diagnosis // wrong states that people get into at several steps, the most fundamental first
	// Widgets is how many objects it begins with at the least; MinWidgets where 0.
	Widgets int
	// Mappings are those of the conversion webhook that the lab serves for this track; none: it has no webhook.
	Mappings []conversion.Mapping
	Prose    fs.FS // one Markdown file a step and locale: STEP.LOCALE.md; the track's own is track.LOCALE.md
	// Subject is the object to be shown where a step names no other; Named are all of which the lesson speaks, and which
	// are therefore always observed whole.
	Subject string
	Named   []string
}

// Group is a heading in the list of tracks.
type Group string

// The groups of tracks.
const (
	Migration Group = "migration"
	Webhook   Group = "webhook"
	Pitfalls  Group = "pitfalls"
)

// Step returns the index of a step; -1 where the track has none of that id.
func (t *Track) Step(id string) int {
	return slices.IndexFunc(t.Steps, func(s Step) bool { return s.ID == id })
}

// Step is one change and what it shows.
type Step struct {
	ID   string
	Show string // the object that this step is about; the track's Subject where empty
	// ShowManagers: the step is about managedFields, so that they are shown without being asked for.
	ShowManagers bool
	// Rewrites: it rewrites objects, and the learner may choose with what.
	Rewrites bool
	// WhatIf are the ids of tracks whose accident happens to people at this very step.
	WhatIf  []string
	Actions []Action
	Predict *Prediction
	Checks  []Check
	// Judge asks for the verdict that the step is proven by. The lab does it when the actions are done; or, where somebody does the
	// step by hand, when all the other checks hold.
	Judge func(context.Context, *Env) error
	Wrong []Diagnosis
	// Lasts says whether what the step left behind is still there; all later steps stand on it. Nil: nothing to undo.
	Lasts func(*evidence.Observation) bool
}

// Action is one request or a few; doing it twice is doing it once.
type Action struct {
	ID string
	// Do acts through Env's recorded client.
	Do func(context.Context, *Env) error
	// Kubectl are shell commands that do the same, to be run one after the other. Nil: it is nothing that a client of the API
	// server could do, such as a fault of the webhook.
	Kubectl func(*Env) []string
	// Change says in a few lines, each beginning with + - or ~, what the action changes; for the screen. May be nil.
	Change func(*Env) []string
	Expect Expect
	// Count the conversions that the action causes: the observer holds still, and it is waited until the webhook is no longer
	// asked, before the action and after it.
	Count bool
}

// Expect says how the server is to answer an action.
type Expect struct {
	Refused bool   // the last exchange of the action is to be refused
	Status  int    // its status; 0: any of 400 and more
	Reason  string // its reason; empty: any
	Field   string // the field of one of its causes; empty: any
	Any     bool   // whatever the answer is: the step shows it, and its checks judge
	// OrDryRun: the action may ask by a dry run instead, and the server take it: then the checks say what is right.
	OrDryRun bool
}

// Accepted is for an action whose every request the server is to take.
var Accepted = Expect{}

// Met says how the exchanges of an action compare to what was expected; nil where they meet it. A request that was sent
// again counts by its last answer.
func (e Expect) Met(xs []evidence.Exchange) error {
	own := ownExchanges(xs)
	if len(own) == 0 || e.Any {
		return nil // an action may have had nothing left to do
	}
	if !e.Refused {
		for i, x := range own {
			if (x.Refused() || x.Status == 0) && !again(x, own[i+1:]) {
				answer := strings.TrimSpace(fmt.Sprintf("%d %s", x.Status, x.Reason)) // not every answer has a reason
				return fmt.Errorf("%s %s: the server answered %s: %s", x.Method, x.Path, answer, x.Message)
			}
		}
		return nil
	}
	last := own[len(own)-1]
	switch {
	case !last.Refused() && e.OrDryRun && last.DryRun():
	case !last.Refused():
		return fmt.Errorf("%s %s: the server accepted it (%d), and was to refuse it", last.Method, last.Path, last.Status)
	case e.Status != 0 && e.Status != last.Status, e.Reason != "" && e.Reason != last.Reason, e.Field != "" && !HasCause(last, e.Field):
		return fmt.Errorf("%s %s: refused with %d %s %v, and not for the reason that was to be seen: %s", last.Method, last.Path, last.Status, last.Reason, last.Causes, last.Message)
	}
	return nil
}

// again says whether the same request was sent once more, after an answer that leaves that open.
func again(x evidence.Exchange, later []evidence.Exchange) bool {
	open := x.Status == 0 || x.Status == http.StatusConflict || x.Status == http.StatusTooManyRequests || x.Status >= 500
	return open && slices.ContainsFunc(later, func(y evidence.Exchange) bool { return y.Method == x.Method && y.Path == x.Path })
}

func ownExchanges(xs []evidence.Exchange) []evidence.Exchange {
	return slices.DeleteFunc(slices.Clone(xs), func(x evidence.Exchange) bool { return x.Actor != evidence.ByStep })
}

// HasCause says whether a refusal names a field.
func HasCause(x evidence.Exchange, field string) bool {
	return slices.ContainsFunc(x.Causes, func(c evidence.Cause) bool { return c.Field == field })
}

// MinWidgets is how many objects a track's first step makes at the least: those that a lesson speaks of by name.
const MinWidgets = 5

// Env is what an action may use.
type Env struct {
	Track     *Track
	Cluster   cluster.Cluster
	Client    *evidence.Client // records as the step's
	Storage   storage.Reader   // nil where there is no access
	Resource  storage.Resource
	Namespace string
	Learner   string
	Widgets   int // how many objects the track begins with
	// RewriteWith is how the learner wants objects to be rewritten.
	RewriteWith RewriteWith
	// Progress is told how a long action goes, and Gate holds one up while the learner pauses it. Never nil.
	Progress func(rewrite.Progress)
	Gate     func(context.Context) error
	Webhook  *conversion.Server // nil where the track has none
	// Earlier is what was seen at the end of an earlier step, by its id; nil where that was not taken. Never nil itself.
	Earlier func(step string) *evidence.Observation
	// Rewrite and Verdict keep what an action found, for the evidence of its step.
	Rewrite *rewrite.Result
	Verdict *verdict.Verdict
}

// Oldest is the version that the track moves away from.
func (e *Env) Oldest() string { return e.Track.Versions[0] }

// Newest is the version that it moves to.
func (e *Env) Newest() string { return e.Track.Versions[len(e.Track.Versions)-1] }

// Manifest is what the track's manifests are filled in with.
func (e *Env) Manifest() manifests.Data {
	d := manifests.Data{Group: e.Resource.Group, Learner: e.Learner, Extra: manifests.Extra(MinWidgets, e.Widgets)}
	if e.Webhook != nil {
		d.Webhook = ManifestWebhook(e.Webhook.ClientConfig())
	}
	return d
}

// ManifestWebhook is what a manifest says of a webhook.
func ManifestWebhook(c *apiextensionsv1.WebhookClientConfig) *manifests.Webhook {
	w := &manifests.Webhook{CABundle: base64.StdEncoding.EncodeToString(c.CABundle), Namespace: c.Service.Namespace, Name: c.Service.Name}
	if c.Service.Path != nil {
		w.Path = *c.Service.Path
	}
	if c.Service.Port != nil {
		w.Port = *c.Service.Port
	}
	return w
}

// Probe is the client for requests that are not part of the step.
func (e *Env) Probe() *evidence.Client { return e.Client.As(evidence.ByProbe) }

// Path is where the API serves one of the track's objects; the collection where name is empty.
func (e *Env) Path(version, name string) string {
	if name == "" {
		return evidence.CollectionPath(e.Resource, version, e.Namespace)
	}
	return evidence.ObjectPath(e.Resource, version, e.Namespace, name)
}

// Evidence is what checks, predictions and prose may speak of.
type Evidence struct {
	Before, After *evidence.Observation
	During        []*evidence.Observation // what the step has kept so far: before it, and after each action
	Exchanges     []evidence.Exchange     // of the step's actions and by hand; not the lab's own reads
	// Conversions are the reviews that the webhook was sent: because of the step's actions, or, where it was done by hand, since
	// the step began. The last ones, where they are many.
	Conversions []evidence.Conversion
	// Calls counts the reviews of each action that counts them.
	Calls     map[string]int
	Verdict   *verdict.Verdict
	Rewrite   *rewrite.Result
	Resource  storage.Resource
	Namespace string
	Widgets   int
	Named     []string // the objects of which the lesson speaks; an observation always holds them
	// RewriteWith is as the learner wants it; what was done is in the observations. ServerVersion is the API server's.
	RewriteWith   RewriteWith
	ServerVersion string
	Fault         conversion.Fault // of the webhook that the lab serves; the zero Fault where all is well
	Failure       error            // an action of the step failed in a way that the lesson does not want
}

// CheckKind says what a check is for.
type CheckKind string

const (
	// Done: the step is finished when all checks of this kind hold in one observation.
	Done CheckKind = "done"
	// Invariant: must hold in the observation in which the step is finished.
	Invariant CheckKind = "invariant"
)

// Needs is what a cluster must have for a check to be made, or for a track to be taken.
type Needs string

const (
	// NeedsBytes: the stored values must be readable.
	NeedsBytes Needs = "bytes"
	// NeedsMigration: the API server must offer StorageVersionMigration.
	NeedsMigration Needs = "StorageVersionMigration"
	// NeedsRestore: the lab must be able to put old bytes back into etcd.
	NeedsRestore Needs = "writing to etcd"
	// NeedsWebhook: the API server must be able to call this process.
	NeedsWebhook Needs = "webhook"
)

// RewriteWith says who rewrites objects where a step leaves the choice.
type RewriteWith string

const (
	// WithPatch: the lab does, by merge patches.
	WithPatch RewriteWith = "patch"
	// WithMigration: the cluster's StorageVersionMigration does.
	WithMigration RewriteWith = "svm"
)

// Check is one truth that a step shows.
type Check struct {
	ID    string
	Kind  CheckKind
	Needs Needs
	Eval  func(Evidence) Outcome
}

// Result is how a check went.
type Result string

// Results of checks, steps and runs.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
	Unknown Result = "unknown" // of a run: a check that was needed was skipped
)

// Outcome is what a check found.
type Outcome struct {
	Result    Result
	Want, Got string
	Reason    string // why it was skipped
}

// Expected makes an Outcome: passed where want and got read the same.
func Expected(want, got any) Outcome {
	o := Outcome{Result: Failed, Want: text(want), Got: text(got)}
	if o.Want == o.Got {
		o.Result = Passed
	}
	return o
}

// Holds makes an Outcome of a condition, and of what was wanted and seen in words.
func Holds(ok bool, want, got string) Outcome {
	o := Outcome{Result: Failed, Want: want, Got: got}
	if ok {
		o.Result = Passed
	}
	return o
}

func text(v any) string {
	if l, ok := v.([]string); ok {
		return "[" + strings.Join(l, " ") + "]"
	}
	return fmt.Sprint(v)
}

// Evaluate makes a check, or skips it where its need is not met.
func (c Check) Evaluate(e Evidence) Outcome {
	if c.Needs == NeedsBytes && (e.After == nil || !e.After.Stored.Access) {
		var stored evidence.Stored
		if e.After != nil {
			stored = e.After.Stored
		}
		return Outcome{Result: Skipped, Reason: stored.Missing()}
	}
	if e.After == nil {
		return Outcome{Result: Failed, Want: "an observation", Got: "nothing was observed yet"}
	}
	return c.Eval(e)
}

// ErrNoAnswer says that none of a prediction's options is what the server did.
var ErrNoAnswer = errors.New("none of the options is what the server did")

// Prediction is a question before the step, answered by the server in the step.
type Prediction struct {
	Options []string // ids, in the order in which they are shown
	// Answer computes the right option; an error wraps ErrNoAnswer where none fits.
	Answer func(Evidence) (string, error)
}

// Diagnosis recognises a wrong state that people get into. What it is and the way on are in the piece wrong:ID of the prose.
type Diagnosis struct {
	ID   string
	Seen func(Evidence) bool
	// From is the first step at which a track takes it to be wrong, Until the step from which on it is right; empty: any, never.
	From, Until string
	// Prose is where its piece stands, if not in that of the step or the track: tracks have it in common.
	Prose *Prose
}

// Say is what it says to people: its piece of its own prose, or else of the first of those given that has it.
func (d Diagnosis) Say(t *Track, e Evidence, from ...*Prose) (string, error) {
	piece := "wrong:" + d.ID
	for _, p := range append([]*Prose{d.Prose}, from...) {
		if p != nil && p.Has(piece) {
			return p.Render(t, piece, e)
		}
	}
	return "", fmt.Errorf("%s: nothing says %q", t.ID, piece)
}

// Wrongs are the diagnoses of a step, the most fundamental first: those of the whole track, and the step's own.
func (t *Track) Wrongs(step int) []Diagnosis {
	var out []Diagnosis
	for _, w := range t.Wrong {
		if step >= t.Step(w.From) && (w.Until == "" || step < t.Step(w.Until)) {
			out = append(out, w)
		}
	}
	return append(out, t.Steps[step].Wrong...)
}

// Locale is the language of the prose.
const Locale = "en"

// Timeout is how long a step may take to show its effect after its actions are done. It is long: a step ends as soon
// as its checks hold.
const Timeout = 20 * time.Second
