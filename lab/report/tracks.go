package report

import (
	"fmt"
	"strings"

	"github.com/crdlab/crdlab/lab/lesson"
)

// TrackList is the document of the tracks that there are.
type TrackList struct {
	Head
	Tracks []Track `json:"tracks"`
}

// Track is one track, and what it teaches.
type Track struct {
	ID       string       `json:"id"`
	Group    lesson.Group `json:"group"`
	Title    string       `json:"title"`
	Summary  string       `json:"summary"`  // Markdown
	Strategy string       `json:"strategy"` // of conversion
	Versions []string     `json:"versions"` // in the order of their age
	Minutes  int          `json:"minutes"`  // about how long it takes a person
	Needs    []string     `json:"needs"`    // without which it cannot be taken: bytes, StorageVersionMigration, webhook
	Steps    []TrackStep  `json:"steps"`
}

// TrackStep is one step of a track.
type TrackStep struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	WhatIf []string `json:"whatIf"` // ids of tracks whose accident happens to people at this step
}

// NewTrackList makes the document of the tracks.
func NewTrackList(tracks []*lesson.Track) *TrackList {
	return &TrackList{Head: Head{APIVersion, "TrackList"}, Tracks: each(tracks, newTrack)}
}

func newTrack(t *lesson.Track) Track {
	title, summary, titles := t.Describe()
	out := Track{ID: t.ID, Group: t.Group, Title: title, Summary: summary, Strategy: t.Strategy,
		Versions: list(t.Versions), Minutes: t.Minutes, Needs: each(t.Needs, func(n lesson.Needs) string { return string(n) }), Steps: make([]TrackStep, len(t.Steps))}
	for i := range t.Steps {
		out.Steps[i] = TrackStep{ID: t.Steps[i].ID, Title: titles[i], WhatIf: list(t.Steps[i].WhatIf)}
	}
	return out
}

// Tracks tells the tracks, each with its steps.
func (t *Text) Tracks(l *TrackList) error {
	for i, track := range l.Tracks {
		if i > 0 {
			t.line("")
		}
		t.style = newStyle(t.width, t.colour, track.Versions)
		t.line(t.ink(bold, track.ID) + "  " + track.Title)
		t.line("  " + t.ink(faint, fmt.Sprintf("strategy %s · %s · about %s", track.Strategy,
			plural(len(track.Steps), "step"), plural(track.Minutes, "minute"))))
		if len(track.Needs) > 0 {
			t.line("  " + t.ink(faint, "needs "+strings.Join(track.Needs, ", ")))
		}
		for _, l := range t.prose(track.Summary, t.width-2*len(margin)) {
			t.line(strings.TrimRight("  "+l, " "))
		}
		id := 0
		for _, s := range track.Steps {
			id = max(id, len(s.ID))
		}
		for j, s := range track.Steps {
			t.line(fmt.Sprintf("  %2d  %s  %s", j+1, fill(s.ID, id), t.say(faint, s.Title)))
			if len(s.WhatIf) == 0 {
				continue
			}
			for _, l := range wrap("what if: "+strings.Join(s.WhatIf, ", "), t.width-6) {
				t.line("      " + t.ink(faint, l))
			}
		}
	}
	return t.err
}
