// Package views is what is shown: the terminal program of the lab, and the same lesson line by line.
//
// It is a reader of lab.State and sends commands to a session; it knows no track, no step and no version, and asks the
// API server nothing.
package views

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Session is a track that is being gone through. Its methods are safe for concurrent use.
type Session interface {
	// State is a picture of the session, never changed after it was handed out.
	State() *lab.State
	// Changed is closed at the next change of the state.
	Changed() <-chan struct{}
	// Predict chooses an option of the current step.
	Predict(option string) error
	// Apply applies the current step and returns when its checks were made.
	Apply(ctx context.Context) error
	// Next goes on to the next step; false where there is none, or the current one is not done.
	Next() bool
	// RewriteWith chooses how the current step rewrites objects.
	RewriteWith(with lesson.RewriteWith) error
	// SetFault switches a fault of the track's webhook on in place of the one before; the empty id heals it.
	SetFault(ctx context.Context, id string) error
	// Bench tries every operation under faults of the webhook, and tells each cell. Where no fault is named, it tries all.
	Bench(ctx context.Context, faults []string, each func(bench.Cell)) error
	// GoTo resets the track and replays it up to a step.
	GoTo(ctx context.Context, stepID string) error
	// Reset begins the track anew.
	Reset(ctx context.Context) error
	// Park leaves the cluster to another session, until Reset or GoTo.
	Park(ctx context.Context) error
	// Select asks that an object be held whole in the observations to come.
	Select(namespace, name string)
	// Rest waits until the state has all that the cluster shows, and nothing is left to be read.
	Rest(ctx context.Context) error
	// Pause holds up a rewrite, or lets it go on.
	Pause(bool)
	// Close ends the session.
	Close(ctx context.Context) error
}

// Lab is what the start screen offers, and how it is done.
type Lab struct {
	Tracks      []TrackInfo
	ClusterName string // as it is known before the cluster runs, such as embedded
	// Start starts the cluster; the program is on the screen before. It may return before the cluster is live.
	Start func(ctx context.Context) error
	// Phases tells how the start goes and is closed when the cluster is live. Nil: it is live when Start returns.
	Phases <-chan Phase
	// Open begins a track on the live cluster; GoOn begins one where the learner left it, with the steps before rebuilt.
	Open, GoOn func(ctx context.Context, trackID string) (Session, error)
	// Left says where the learner is in a track whose session has ended; nil where that is not kept.
	Left func(ctx context.Context, trackID string) Left
	// Chosen is the id of the track that is chosen at first; the first one where it is empty.
	Chosen string
	// Notice is said on the start screen, in one line, until the first key.
	Notice string
	// Unavailable says why tracks cannot be taken on the live cluster, by their ids. Nil: all can.
	Unavailable func(ctx context.Context) (map[string]string, error)
	// Report writes a report of a run and says where. Nil: there are no reports.
	Report func(*lab.State) (path string, err error)
}

// own is a copy, for tracks of which some may turn out to be unavailable.
func (l *Lab) own() *Lab {
	own := *l
	own.Tracks = slices.Clone(l.Tracks)
	return &own
}

// unavailable notes which tracks cannot be taken, and why.
func (l *Lab) unavailable(why map[string]string) {
	for i, t := range l.Tracks {
		l.Tracks[i].Unavailable = cmp.Or(why[t.ID], t.Unavailable)
	}
}

// TrackInfo is a track in the list of the start screen.
type TrackInfo struct {
	ID          string
	Group       lesson.Group
	Title       string
	Summary     string // one line
	Strategy    string
	Minutes     int
	Steps       []string // their titles
	Versions    []string
	Unavailable string // why it cannot be taken here; empty where it can
	Left        Left
}

// Left is how far the learner has come in a track before.
type Left struct {
	Step         int  // the number of the step to go on at; 0 where there is nothing to go on with
	Done         bool // they have come to its end once
	Right, Given int  // their predictions at the first try
}

// Phase is a part of the cluster's start.
type Phase struct {
	Name string
	Done bool
	Took time.Duration // of one that is done
}

// Options are how the program runs.
type Options struct {
	Theme   string // auto, dark, light, 16, none; auto where empty
	NoColor bool
	Track   string // to be opened as soon as the cluster is live; the start screen where empty
	Play    *Play  // that track is played by itself; nil: somebody goes through it

	// For tests and recordings: where empty, the process's own terminal is used and asked.
	Input         io.Reader
	Output        io.Writer
	Environ       []string
	Profile       colorprofile.Profile
	Width, Height int
}

// ErrInterrupted says that the program was ended by ctrl-c or a signal.
var ErrInterrupted = errors.New("interrupted")

// ErrStepFailed says that a step did not show what it was to show.
var ErrStepFailed = errors.New("a step failed")

// closing is how long the end of a session may take.
const closing = 10 * time.Second

// Run shows the lab in the terminal until the learner quits. It closes the sessions that it opened.
func Run(ctx context.Context, l *Lab, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	m, err := newProgram(ctx, l, o)
	if err != nil {
		cancel()
		return err
	}
	defer m.sessions.close(cancel)
	options := []tea.ProgramOption{tea.WithContext(ctx)}
	var model tea.Model = m
	if o.Play != nil {
		model = newPlayed(m, *o.Play, o.Track)
		if o.Play.Unseen {
			options = append(options, tea.WithInput(nil), tea.WithoutRenderer(), tea.WithoutSignalHandler())
		}
	}
	if o.Input != nil {
		options = append(options, tea.WithInput(o.Input))
	}
	if o.Output != nil {
		options = append(options, tea.WithOutput(o.Output))
	}
	if o.Environ != nil {
		options = append(options, tea.WithEnvironment(o.Environ))
	}
	if o.Profile != colorprofile.Unknown {
		options = append(options, tea.WithColorProfile(o.Profile))
	}
	if o.Width > 0 {
		options = append(options, tea.WithWindowSize(o.Width, o.Height))
	}
	_, err = tea.NewProgram(model, options...).Run()
	switch {
	case m.interrupted, errors.Is(err, tea.ErrInterrupted), ctx.Err() != nil:
		return ErrInterrupted
	case err == nil && m.player != nil:
		return m.player.result()
	}
	return err
}
