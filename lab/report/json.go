package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/progress"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/verdict"
)

// APIVersion is the version of the JSON documents. Within it, fields are added and never change their meaning.
const APIVersion = progress.APIVersion

// Head says what a document is.
type Head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Run is the document of a run. Its lists are never null.
type Run struct {
	Head
	Track      string        `json:"track"`
	CRD        string        `json:"crd"`
	Learner    string        `json:"learner"` // empty where the run is nobody's in particular
	Cluster    Cluster       `json:"cluster"`
	StartedAt  string        `json:"startedAt"` // RFC 3339
	Result     lesson.Result `json:"result"`    // passed, failed or unknown
	DurationMS float64       `json:"durationMs"`
	Steps      []Step        `json:"steps"` // every step of the track, in its order
}

// Cluster is where a run took place.
type Cluster struct {
	Type          string `json:"type"`
	Version       string `json:"version"`
	StorageAccess bool   `json:"storageAccess"` // whether the stored values could be read
}

// Step is one step of a run: what it asked of the server and what was seen.
type Step struct {
	ID         string        `json:"id"`
	Title      string        `json:"title"`
	Result     lesson.Result `json:"result"`          // passed or failed; skipped where it was not applied
	Error      string        `json:"error,omitempty"` // an action failed in a way that the lesson does not want
	DurationMS float64       `json:"durationMs"`
	Actions    []Action      `json:"actions"`
	Exchanges  []Exchange    `json:"exchanges"`
	// Conversions are the reviews that the track's webhook was sent because of the step; the last ones, where they are many.
	Conversions  []evidence.Conversion `json:"conversions"`
	Observations []Observation         `json:"observations"`
	Prediction   *Prediction           `json:"prediction,omitempty"`
	Checks       []Check               `json:"checks"`
	Rewrite      *rewrite.Result       `json:"rewrite,omitempty"`
	Verdict      *VerdictBody          `json:"verdict,omitempty"`
}

// Action is one action of a step.
type Action struct {
	ID        string   `json:"id"`
	Exchanges []int    `json:"exchanges"` // indexes into the step's exchanges
	Kubectl   []string `json:"kubectl"`   // shell commands that do the same
	// Reviews is how many conversions it caused; it is there where they were counted.
	Reviews *int `json:"reviews,omitempty"`
}

// Exchange is an evidence.Exchange whose lists are always there.
type Exchange struct {
	evidence.Exchange
	Causes   []evidence.Cause `json:"causes"`
	Warnings []string         `json:"warnings"`
}

// Observation is an evidence.Observation whose parts are always there; crd alone may be null, where there is no CRD.
type Observation struct {
	evidence.Observation
	After          string   `json:"after"` // before, the id of the action that it follows, or settled
	CRD            *CRD     `json:"crd"`
	Stored         Stored   `json:"stored"`
	ObjectsOmitted int      `json:"objectsOmitted"` // how many objects are counted and not listed
	Objects        []Object `json:"objects"`
}

// CRD is an evidence.CRD whose lists are always there.
type CRD struct {
	evidence.CRD
	Versions       []evidence.Version `json:"versions"`
	StoredVersions []string           `json:"storedVersions"`
	Conditions     map[string]string  `json:"conditions"`
}

// Stored is an evidence.Stored whose counts are always there.
type Stored struct {
	evidence.Stored
	ByVersion map[string]int `json:"byVersion"`
}

// Object is an evidence.Object whose lists are always there.
type Object struct {
	evidence.Object
	Views    map[string]*evidence.View `json:"views"`
	Managers []evidence.Manager        `json:"managers"`
}

// Prediction is a step's question and its answers.
type Prediction struct {
	Question string   `json:"question"` // Markdown
	Options  []Option `json:"options"`
	Given    string   `json:"given"`  // the id of the learner's option; empty where nobody was asked
	Answer   string   `json:"answer"` // the id of the option that the server showed to be right; empty before that
}

// Option is one answer to choose from.
type Option struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Check is one check and how it went.
type Check struct {
	ID     string        `json:"id"`
	Result lesson.Result `json:"result"`
	Want   string        `json:"want"`
	Got    string        `json:"got"`
	Reason string        `json:"reason"` // why it was skipped
}

// Verdict is the document of a verdict.
type Verdict struct {
	Head
	VerdictBody
}

// VerdictBody is a verdict.Verdict whose lists are always there.
type VerdictBody struct {
	verdict.Verdict
	Drop     []string  `json:"drop"`
	Findings []Finding `json:"findings"`
}

// Finding is a verdict.Finding whose evidence is always there.
type Finding struct {
	verdict.Finding
	Evidence []string `json:"evidence"`
}

// WriteJSON writes a document, indented.
func WriteJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write the document as JSON: %w", err)
	}
	return nil
}

// NewRun makes the document of a run that was to end at a step, or at the track's end where until is empty. Its
// duration is that of its steps: neither the start of the cluster nor a learner's thinking is in it.
func NewRun(s *lab.State, until string) *Run {
	r := &Run{
		Head:      Head{APIVersion, "Run"},
		Track:     s.Track.ID,
		CRD:       s.Resource.String(),
		Learner:   s.Learner,
		Cluster:   Cluster{Type: s.Cluster.Type, Version: s.Cluster.Version, StorageAccess: storageAccess(s)},
		StartedAt: s.StartedAt.UTC().Format(time.RFC3339),
		Result:    Result(s, until),
		Steps:     each(s.Steps, newStep),
	}
	for _, step := range s.Steps {
		r.DurationMS += milliseconds(step.Took)
	}
	return r
}

// NewVerdict makes the document of a verdict.
func NewVerdict(v *verdict.Verdict) *Verdict {
	return &Verdict{Head: Head{APIVersion, "Verdict"}, VerdictBody: *newVerdictBody(v)}
}

func newVerdictBody(v *verdict.Verdict) *VerdictBody {
	if v == nil {
		return nil
	}
	return &VerdictBody{Verdict: *v, Drop: list(v.Drop), Findings: each(v.Findings, func(f verdict.Finding) Finding {
		return Finding{Finding: f, Evidence: list(f.Evidence)}
	})}
}

func newStep(s *lab.Step) Step {
	out := Step{
		ID:           s.ID,
		Title:        s.Title,
		Result:       stepResult(s),
		DurationMS:   milliseconds(s.Took),
		Exchanges:    each(s.Exchanges, newExchange),
		Conversions:  list(s.Conversions),
		Observations: each(s.Observations, newObservation),
		Prediction:   newPrediction(s),
		Rewrite:      s.Rewrite,
		Verdict:      newVerdictBody(s.Verdict),
		Actions: each(s.Actions, func(a lab.Action) Action {
			out := Action{ID: a.ID, Exchanges: list(a.Exchanges), Kubectl: list(a.Kubectl)}
			if a.Counted {
				out.Reviews = &a.Reviews
			}
			return out
		}),
		Checks: each(s.Checks, func(c lab.Check) Check {
			return Check{ID: c.ID, Result: c.Result, Want: c.Want, Got: c.Got, Reason: c.Reason}
		}),
	}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	return out
}

func newPrediction(s *lab.Step) *Prediction {
	if s.Question == "" {
		return nil
	}
	return &Prediction{Question: s.Question, Given: s.Given, Answer: s.Answer,
		Options: each(s.Options, func(o lab.Option) Option { return Option(o) })}
}

func newExchange(x evidence.Exchange) Exchange {
	return Exchange{Exchange: x, Causes: list(x.Causes), Warnings: list(x.Warnings)}
}

func newObservation(o *evidence.Observation) Observation {
	out := Observation{
		Observation:    *o,
		After:          o.After,
		Stored:         Stored{Stored: o.Stored, ByVersion: table(o.Stored.ByVersion)},
		ObjectsOmitted: o.ObjectsOmitted,
		Objects: each(o.Objects, func(x *evidence.Object) Object {
			return Object{Object: *x, Views: table(x.Views), Managers: list(x.Managers)}
		}),
	}
	if o.CRD != nil {
		out.CRD = &CRD{CRD: *o.CRD, Versions: list(o.CRD.Versions), StoredVersions: list(o.CRD.StoredVersions),
			Conditions: table(o.CRD.Conditions)}
	}
	return out
}

// storageAccess says whether the stored values could be read in this run.
func storageAccess(s *lab.State) bool {
	if s.Live != nil {
		return s.Live.Stored.Access
	}
	for _, step := range s.Steps {
		if step.After != nil {
			return step.After.Stored.Access
		}
	}
	return false
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// each makes a list of another, never nil.
func each[A, B any](in []A, of func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = of(a)
	}
	return out
}

// list is the same list, never nil.
func list[A any](l []A) []A {
	if l == nil {
		return []A{}
	}
	return l
}

// table is the same map, never nil.
func table[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
