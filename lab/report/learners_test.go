package report

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/progress"
)

// learner is somebody who has done the first steps of a track of three: the predictions say which were right.
func learner(name, track string, predictions string, spent ...time.Duration) progress.Found {
	p := &progress.Progress{APIVersion: APIVersion, Kind: progress.Kind, Learner: name, Track: track, Cluster: progress.Cluster{Type: "embedded", Version: "v1.37.2"},
		Crdlab: "v1.0.0", StartedAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), LastAt: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	for i, title := range []string{"Create v1alpha1", "Switch the storage version", "Verify"} {
		s := progress.Step{ID: fmt.Sprintf("step-%d", i+1), Title: title, Result: lesson.Skipped}
		if i < len(spent) {
			s.Result, s.Tries, s.SpentMS, s.ByHand = lesson.Passed, 1, spent[i].Milliseconds(), i == 1
			s.FinishedAt = p.StartedAt.Add(time.Duration(i+1) * time.Minute)
		}
		if i < len(predictions) {
			s.Prediction = map[byte]*progress.Prediction{'r': {Given: "a", Right: true}, 'w': {Given: "b"}, '-': {}}[predictions[i]]
		}
		p.Steps = append(p.Steps, s)
	}
	p.At = p.Steps[min(len(spent), 2)].ID
	folder := cmp.Or(name, "nameless")
	return progress.Found{Path: "class/" + folder + "/" + strings.ReplaceAll(track, "/", "_") + ".json", Progress: p}
}

func class() *Report {
	return NewReport([]progress.Found{
		learner("bo", "migrate", "rr-", 30*time.Second, 4*time.Minute, 70*time.Minute),
		learner("ana", "migrate", "wr", 50*time.Second, 8*time.Minute),
		learner("ana", "pitfalls/svm-record", ""),
		learner("", "migrate", "w", 10*time.Second),
	}, false)
}

func reportText(t *testing.T, r *Report, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := NewText(&out, width, false).Report(r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReportText(t *testing.T) { golden.RequireEqual(t, reportText(t, class(), 80)) }

func TestReportTextOfOne(t *testing.T) {
	golden.RequireEqual(t, reportText(t, NewReport([]progress.Found{learner("", "migrate", "w-", time.Minute, time.Hour)}, true), 80))
}

func TestReportMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := MarkdownReport(&out, class()); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.Bytes())
}

func TestReportJSON(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, NewReport([]progress.Found{learner("ana", "migrate", "wr", 50*time.Second, 8*time.Minute)}, false)); err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, out.Bytes())
	out.Reset()
	if err := WriteJSON(&out, NewReport(nil, true)); err != nil || strings.Contains(out.String(), "null") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestReportTextKeepsItsWidth(t *testing.T) {
	long := learner("a-learner-with-a-name-as-long-as-a-namespace-may-be", "pitfalls/preserve-unknown-fields", "r", time.Minute)
	for _, width := range []int{80, 100} {
		for _, r := range []*Report{class(), NewReport([]progress.Found{long}, false)} {
			for l := range strings.Lines(reportText(t, r, width)) {
				if n := ansi.StringWidth(strings.TrimRight(l, "\n")); n > width {
					t.Errorf("at %d columns this line has %d: %q", width, n, l)
				}
			}
		}
	}
}

func TestMedian(t *testing.T) {
	for want, of := range map[int64][]int64{0: nil, 3: {3}, 4: {9, 1, 4}, 5: {8, 2, 9, 1}} {
		if got := median(of); got != want {
			t.Errorf("the median of %v is %d, not %d", of, want, got)
		}
	}
}

func TestAFileIsKnownByItsEnd(t *testing.T) {
	long := learner("", "migrate", "", time.Minute)
	long.Path = "/home/teacher/classes/spring/room-7/pc-12/migrate.json"
	for path, want := range map[string]string{long.Path: "…ing/room-7/pc-12/migrate", "pc-12/migrate.json": "pc-12/migrate"} {
		long.Path = path
		if who := NewReport([]progress.Found{long}, false).Results[0].who; who != want {
			t.Errorf("%s is %q, not %q", path, who, want)
		}
	}
}
