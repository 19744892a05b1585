package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab/progress"
)

// Report is the document of who got where: what learners have done in tracks, and what of it all of them have.
type Report struct {
	Head
	Results []LearnerResult `json:"results"` // one a learner and track
	Tracks  []TrackResult   `json:"tracks"`  // those of which there are results
}

// LearnerResult is a learner's progress in a track, and what is counted in it.
type LearnerResult struct {
	progress.Progress
	File        string      `json:"file"` // in which it is kept
	StepsDone   int         `json:"stepsDone"`
	Predictions Predictions `json:"predictions"`
	SpentMS     int64       `json:"spentMs"`

	who string
}

// Predictions are those of first tries.
type Predictions struct {
	Given int `json:"given"`
	Right int `json:"right"`
}

// TrackResult is what learners have done in the steps of a track.
type TrackResult struct {
	Track    string       `json:"track"`
	Learners int          `json:"learners"` // how many have begun it
	Steps    []StepResult `json:"steps"`
}

// StepResult is what learners have done in a step.
type StepResult struct {
	ID            string      `json:"id"`
	Title         string      `json:"title"`
	Done          int         `json:"done"` // how many have
	Predictions   Predictions `json:"predictions"`
	MedianSpentMS int64       `json:"medianSpentMs"` // of those who have done it

	spent []int64
}

// NewReport makes the document of what was found. A learner without a name is this user where it is their own progress, and
// else known by the file.
func NewReport(found []progress.Found, own bool) *Report {
	r := &Report{Head: Head{APIVersion, "Report"}, Results: each(found, func(f progress.Found) LearnerResult { return newLearnerResult(f, own) }),
		Tracks: []TrackResult{}}
	slices.SortStableFunc(r.Results, func(a, b LearnerResult) int {
		return cmp.Or(cmp.Compare(a.who, b.who), cmp.Compare(a.Track, b.Track))
	})
	for i := range r.Results {
		r.count(&r.Results[i])
	}
	for i := range r.Tracks {
		for j := range r.Tracks[i].Steps {
			s := &r.Tracks[i].Steps[j]
			s.MedianSpentMS = median(s.spent)
		}
	}
	return r
}

// maxWho is how much of a file's path is shown in a table, in columns, behind the sign that it was cut.
const maxWho = 24

func newLearnerResult(f progress.Found, own bool) LearnerResult {
	out := LearnerResult{Progress: *f.Progress, File: f.Path, StepsDone: f.Done(), SpentMS: f.Spent().Milliseconds(), who: f.Learner}
	out.Predictions.Right, out.Predictions.Given = f.Predicted()
	switch {
	case out.who == "" && own:
		out.who = "you"
	case out.who == "":
		out.who = strings.TrimSuffix(f.Path, ".json")
		out.who = ansi.TruncateLeft(out.who, ansi.StringWidth(out.who)-maxWho, "…") // its end tells it from others
	}
	return out
}

// count adds a learner's steps to those of the track.
func (r *Report) count(l *LearnerResult) {
	at := slices.IndexFunc(r.Tracks, func(t TrackResult) bool { return t.Track == l.Track })
	if at < 0 {
		r.Tracks, at = append(r.Tracks, TrackResult{Track: l.Track}), len(r.Tracks)
	}
	t := &r.Tracks[at]
	t.Learners++
	for _, step := range l.Steps {
		at := slices.IndexFunc(t.Steps, func(s StepResult) bool { return s.ID == step.ID })
		if at < 0 {
			t.Steps, at = append(t.Steps, StepResult{ID: step.ID, Title: step.Title}), len(t.Steps)
		}
		s := &t.Steps[at]
		if step.Done() {
			s.Done++
			s.spent = append(s.spent, step.SpentMS)
		}
		if p := step.Prediction; p != nil && p.Given != "" {
			s.Predictions.Given++
			if p.Right {
				s.Predictions.Right++
			}
		}
	}
}

// median is the middle one of some numbers; 0 of none.
func median(of []int64) int64 {
	if len(of) == 0 {
		return 0
	}
	of = slices.Sorted(slices.Values(of))
	n := len(of)
	return (of[(n-1)/2] + of[n/2]) / 2
}

// The heads of the tables, in text and on a page.
var (
	learnerHead = []string{"learner", "track", "steps", "right", "time", "where"}
	ownHead     = []string{"", "", "step", "prediction", "tries", "time", ""}
	classHead   = []string{"", "step", "done", "right", "median"}
)

// legend says what the columns count.
var legend = "right: of the predictions at the first try. time: for which the steps waited for the learner, " +
	spent(progress.Longest.Milliseconds()) + " at most at a stretch."

func (r *Report) learners() [][]string {
	return each(r.Results, func(l LearnerResult) []string {
		return []string{l.who, l.Track, outOf(l.StepsDone, len(l.Steps)), l.Predictions.String(), spent(l.SpentMS), where(&l.Progress)}
	})
}

// own are the steps of one learner.
func (l *LearnerResult) own() [][]string {
	var rows [][]string
	for i, s := range l.Steps {
		said, tries, took, how := "", "", "", ""
		switch p := s.Prediction; {
		case p == nil:
		case p.Given == "":
			said = "none"
		case p.Right:
			said = "right"
		default:
			said = "wrong"
		}
		if s.Tries > 0 {
			tries = Number(s.Tries)
		}
		if s.SpentMS > 0 {
			took = spent(s.SpentMS)
		}
		if s.ByHand {
			how = "by hand"
		}
		rows = append(rows, []string{Number(i + 1), plainMark(string(s.Result)), s.Title, said, tries, took, how})
	}
	return rows
}

func (t *TrackResult) class() [][]string {
	var rows [][]string
	for i, s := range t.Steps {
		took := ""
		if s.Done > 0 {
			took = spent(s.MedianSpentMS)
		}
		rows = append(rows, []string{Number(i + 1), s.Title, outOf(s.Done, t.Learners), s.Predictions.String(), took})
	}
	return rows
}

// classes are the tracks that several learners have begun.
func (r *Report) classes() []TrackResult {
	return slices.DeleteFunc(slices.Clone(r.Tracks), func(t TrackResult) bool { return t.Learners < 2 })
}

func (p Predictions) String() string {
	if p.Given == 0 {
		return "–"
	}
	return outOf(p.Right, p.Given)
}

// where is the step that a learner is to do next.
func where(p *progress.Progress) string {
	if p.Finished() {
		if _, middle := p.Left(); !middle {
			return "✓ done"
		}
	}
	at := slices.IndexFunc(p.Steps, func(s progress.Step) bool { return s.ID == p.At })
	return fmt.Sprintf("%d %s", at+1, p.Steps[at].Title)
}

func outOf(n, of int) string { return Number(n) + " of " + Number(of) }

// spent is a person's time as it is shown.
func spent(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	default:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Report tells who got where: a line a learner and track; of one alone also each step, and of several what all have done in
// each step.
func (t *Text) Report(r *Report) error {
	t.grid(learnerHead, r.learners(), []int{2, 3, 4}, []int{5, 1, 0})
	if len(r.Results) == 1 {
		t.line("")
		t.grid(ownHead, r.Results[0].own(), []int{0, 4, 5}, []int{2})
	}
	for _, c := range r.classes() {
		t.line("")
		t.line(t.ink(bold, c.Track) + t.ink(faint, ", "+plural(c.Learners, "learner")))
		t.grid(classHead, c.class(), []int{0, 2, 3, 4}, []int{1})
	}
	t.line("")
	for _, l := range wrap(legend, t.width) {
		t.line(t.ink(faint, l))
	}
	return t.err
}

// grid writes rows in columns under their heads: those of right stand at the right. Where the lines are too long, the columns
// of cut are cut, one after the other.
func (t *Text) grid(head []string, rows [][]string, right, cut []int) {
	const gap, least = 2, 12
	widths := make([]int, len(head))
	total := -gap
	for i := range head {
		for _, r := range append([][]string{head}, rows...) {
			widths[i] = max(widths[i], ansi.StringWidth(r[i]))
		}
		total += widths[i] + gap
	}
	for _, i := range cut {
		narrower := max(min(widths[i], least), widths[i]-max(0, total-t.width))
		total += narrower - widths[i]
		widths[i] = narrower
	}
	lay := func(cells []string, code string) {
		line := ""
		for i, c := range cells {
			c = ansi.Truncate(c, widths[i], "…")
			if slices.Contains(right, i) {
				c = strings.Repeat(" ", widths[i]-ansi.StringWidth(c)) + c
			}
			line += fill(c, widths[i]+gap)
		}
		t.line(t.ink(code, strings.TrimRight(line, " ")))
	}
	lay(head, faint)
	for _, r := range rows {
		lay(r, "")
	}
}

// MarkdownReport writes who got where as a page.
func MarkdownReport(out io.Writer, r *Report) error {
	m := &page{out: out}
	m.line("# Who got where")
	m.table(learnerHead, r.learners())
	if len(r.Results) == 1 {
		m.text("## " + r.Results[0].Track + ", step by step")
		m.table(ownHead, r.Results[0].own())
	}
	for _, c := range r.classes() {
		m.text("## " + c.Track + ", " + plural(c.Learners, "learner"))
		m.table(classHead, c.class())
	}
	m.text(legend)
	return m.err
}
