package steps_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps"
)

// TestNoPieceOfProseIsMissing holds that every step says all that it has to, and nothing that nobody reads.
func TestNoPieceOfProseIsMissing(t *testing.T) {
	for _, track := range steps.Tracks() {
		files := map[string]bool{"track.en.md": true}
		common, err := track.ReadProse("track")
		if err != nil {
			t.Error(err)
			continue
		}
		said := []string{"briefing"} // by the track's own prose
		for _, w := range track.Wrong {
			for _, at := range []string{w.From, w.Until} {
				if at != "" && track.Step(at) < 0 {
					t.Errorf("%s: wrong:%s is so from or until %q, which is no step", track.ID, w.ID, at)
				}
			}
			if w.Prose == nil {
				said = append(said, "wrong:"+w.ID)
			}
		}
		for _, piece := range said {
			if !common.Has(piece) {
				t.Errorf("%s: %q is missing", track.ID, piece)
			}
		}
		for _, piece := range common.Pieces() {
			if !slices.Contains(said, piece) {
				t.Errorf("%s: nobody reads %q of the track", track.ID, piece)
			}
		}
		for _, step := range track.Steps {
			p, err := track.ReadProse(step.ID)
			if err != nil {
				t.Error(err)
				continue
			}
			files[step.ID+".en.md"] = true
			want := []string{"briefing", "explanation", "hint:hand"}
			if step.Predict != nil {
				want = append(want, "question")
				for _, o := range step.Predict.Options {
					want = append(want, "option:"+o)
				}
			}
			for _, c := range step.Checks {
				want = append(want, "check:"+c.ID)
			}
			for _, w := range step.Wrong {
				switch {
				case w.Prose == nil:
					want = append(want, "wrong:"+w.ID)
				case !w.Prose.Has("wrong:" + w.ID):
					t.Errorf("%s/%s: %q is missing where it is common to tracks", track.ID, step.ID, w.ID)
				}
			}
			for _, piece := range want {
				if !p.Has(piece) {
					t.Errorf("%s/%s: %q is missing", track.ID, step.ID, piece)
				}
			}
			for _, piece := range p.Pieces() {
				if !slices.Contains(want, piece) {
					t.Errorf("%s/%s: nobody reads %q", track.ID, step.ID, piece)
				}
			}
			if p.Title == "" {
				t.Errorf("%s/%s has no title", track.ID, step.ID)
			}
		}
		all, err := fs.Glob(track.Prose, "*.md")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if !files[f] {
				t.Errorf("%s: no step is called like the prose %s", track.ID, strings.TrimSuffix(f, ".en.md"))
			}
		}
	}
}

// TestEveryStepIsALesson holds what the form cannot: ids are unique, and every step acts, asks and checks.
func TestEveryStepIsALesson(t *testing.T) {
	for _, track := range steps.Tracks() {
		seen := map[string]bool{}
		for i, step := range track.Steps {
			if seen[step.ID] || len(step.Actions) == 0 || len(step.Checks) == 0 || step.Predict == nil {
				t.Errorf("%s: step %d, %q: no unique id, or nothing to do, to ask or to check", track.ID, i+1, step.ID)
			}
			seen[step.ID] = true
			if title := track.StepTitle(i); title == step.ID {
				t.Errorf("%s/%s has no title of its own", track.ID, step.ID)
			}
		}
	}
}

// TestEveryWhatIfIsAPitfall holds that what branches off a step is a pitfall, named once, and that nothing branches off that.
func TestEveryWhatIfIsAPitfall(t *testing.T) {
	for _, track := range steps.Tracks() {
		for _, step := range track.Steps {
			if track.Group == lesson.Pitfalls && len(step.WhatIf) > 0 {
				t.Errorf("%s/%s: %v would branch off a branch", track.ID, step.ID, step.WhatIf)
			}
			seen := map[string]bool{}
			for _, id := range step.WhatIf {
				if accident, err := steps.Find(id); err != nil || accident.Group != lesson.Pitfalls || seen[id] {
					t.Errorf("%s/%s: what if %q: no pitfall, or named twice: %v", track.ID, step.ID, id, err)
				}
				seen[id] = true
			}
		}
	}
}

// TestFindNamesWhatThereIs: an unknown track is answered with those that there are.
func TestFindNamesWhatThereIs(t *testing.T) {
	for _, track := range steps.Tracks() {
		if got, err := steps.Find(track.ID); err != nil || got.ID != track.ID {
			t.Errorf("%s: %v, %v", track.ID, got, err)
		}
		if _, err := steps.Find("migrant"); err == nil || !strings.Contains(err.Error(), track.ID) {
			t.Errorf("the error does not name %s: %v", track.ID, err)
		}
	}
}
