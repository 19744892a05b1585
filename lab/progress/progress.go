// Package progress keeps where a learner is in each track, what they predicted at the first try, and how much time they took
// for each step: in one file a learner and track. Nothing else of them is kept.
package progress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// APIVersion is the version of the file, as it is of all of crdlab's JSON. Within it, fields are added and never change
// their meaning.
const APIVersion = "crdlab.dev/v1"

// Kind is that of the file.
const Kind = "Progress"

// Progress is one learner's way through one track.
type Progress struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Learner    string    `json:"learner"` // empty for whoever gave no name
	Track      string    `json:"track"`
	Cluster    Cluster   `json:"cluster"` // the last one
	Crdlab     string    `json:"crdlab"`  // the version of the last crdlab
	StartedAt  time.Time `json:"startedAt"`
	LastAt     time.Time `json:"lastAt"`
	At         string    `json:"at"`    // the id of the step that is to be done next; of the last one where none is left
	Steps      []Step    `json:"steps"` // every step of the track, in its order
}

// Cluster is where a track was taken.
type Cluster struct {
	Type    string `json:"type"`
	Version string `json:"version"`
}

// Step is how a learner did a step. What the lab did by itself, on the way to a later one, does not count.
type Step struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Result is passed once it was done; unknown where a check could not be made then; failed where it was only tried;
	// skipped where it was not.
	Result lesson.Result `json:"result"`
	ByHand bool          `json:"byHand"` // it was done first by the learner's own kubectl
	Tries  int           `json:"tries"`  // how often it was brought to a result
	// Prediction is that of the first try that the server answered: afterwards the answer is known.
	Prediction *Prediction `json:"prediction,omitempty"`
	SpentMS    int64       `json:"spentMs"` // for how long it waited for the learner; see Longest
	FinishedAt time.Time   `json:"finishedAt,omitzero"`
}

// Prediction is what a learner said before a step.
type Prediction struct {
	Given string `json:"given"` // the id of an option; empty where they said nothing
	Right bool   `json:"right"`
}

// Done says whether the learner has done the step.
func (s *Step) Done() bool { return s.Result == lesson.Passed || s.Result == lesson.Unknown }

// Spent is the time that the learner took for the step.
func (s *Step) Spent() time.Duration { return time.Duration(s.SpentMS) * time.Millisecond }

// Done is how many steps the learner has done.
func (p *Progress) Done() int {
	n := 0
	for i := range p.Steps {
		if p.Steps[i].Done() {
			n++
		}
	}
	return n
}

// Finished says whether the learner has done the track's last step.
func (p *Progress) Finished() bool { return p.Steps[len(p.Steps)-1].Done() }

// Predicted is how many predictions were given at the first try, and how many of these were right.
func (p *Progress) Predicted() (right, given int) {
	for _, s := range p.Steps {
		if s.Prediction == nil || s.Prediction.Given == "" {
			continue
		}
		given++
		if s.Prediction.Right {
			right++
		}
	}
	return right, given
}

// Spent is the time that the learner took for all steps.
func (p *Progress) Spent() time.Duration {
	var all time.Duration
	for i := range p.Steps {
		all += p.Steps[i].Spent()
	}
	return all
}

// Left returns the index of the step at which the learner left the track; false where they are at its beginning or its end,
// so that there is nothing to go on with.
func (p *Progress) Left() (step int, middle bool) {
	at := p.index(p.At)
	return at, at > 0 && (at < len(p.Steps)-1 || !p.Finished())
}

// Given are the predictions of the first tries, by the ids of the steps.
func (p *Progress) Given() map[string]string {
	given := map[string]string{}
	for _, s := range p.Steps {
		if s.Prediction != nil {
			given[s.ID] = s.Prediction.Given
		}
	}
	return given
}

func (p *Progress) index(step string) int {
	return slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == step })
}

// of brings what is kept up to the state of a session: its track may have got other steps meanwhile.
func (p *Progress) of(s *lab.State) {
	p.APIVersion, p.Kind, p.Learner, p.Track = APIVersion, Kind, s.Learner, s.Track.ID
	p.Cluster = Cluster{Type: s.Cluster.Type, Version: s.Cluster.Version}
	if p.StartedAt.IsZero() {
		p.StartedAt = s.StartedAt.UTC().Truncate(time.Second)
	}
	steps := make([]Step, len(s.Steps))
	for i, step := range s.Steps {
		steps[i] = Step{ID: step.ID, Result: lesson.Skipped}
		if at := p.index(step.ID); at >= 0 {
			steps[i] = p.Steps[at]
		}
		steps[i].Title = step.Title
	}
	p.Steps = steps
	if p.index(p.At) < 0 {
		p.At = steps[0].ID
	}
}

// check says why something is no learner's progress. A teacher's files come from elsewhere, and are shown on a terminal.
func (p *Progress) check() error {
	if p.APIVersion != APIVersion || p.Kind != Kind {
		return fmt.Errorf("it is not of apiVersion %s, kind %s", APIVersion, Kind)
	}
	if err := lab.CheckLearner(p.Learner); err != nil {
		return err
	}
	said := []string{p.Track, p.Cluster.Type, p.Cluster.Version, p.Crdlab}
	for _, s := range p.Steps {
		said = append(said, s.ID, s.Title)
		if !slices.Contains([]lesson.Result{lesson.Passed, lesson.Unknown, lesson.Failed, lesson.Skipped}, s.Result) {
			return fmt.Errorf("the step %q has the result %q", s.ID, s.Result)
		}
		if s.Tries < 0 || s.SpentMS < 0 {
			return fmt.Errorf("the step %q has a number below 0", s.ID)
		}
		if s.Prediction != nil {
			said = append(said, s.Prediction.Given)
		}
	}
	if slices.ContainsFunc(said, func(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }) {
		return errors.New("there are control characters in it")
	}
	if p.Track == "" || p.index(p.At) < 0 {
		return errors.New("it names no track, or no step of it at which the learner is")
	}
	return nil
}
