package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/steps"
	"github.com/crdlab/crdlab/lab/views"
)

// lab opens the lab in the terminal; line by line where there is none, or it can do no more.
func (a *app) lab(ctx context.Context) error {
	wayOn := ""
	plain := !a.canShow()
	if plain { // where there is no key for a reset
		wayOn = "start crdlab again"
	}
	return a.open(ctx, &a.place, wayOn, steps.Tracks(), a.keeper(ctx), func(ctx context.Context, l *views.Lab) error {
		if plain {
			return views.Plain(ctx, l, l.Tracks[0].ID, a.in, a.out)
		}
		return views.Run(ctx, l, views.Options{NoColor: a.noColour()})
	})
}

// open has a lab with tracks shown, and ends what was started for it. The way on is what to do where the server has ended
// by itself; a nil keeper keeps nothing of what is done.
func (a *app) open(ctx context.Context, at *place, wayOn string, tracks []*lesson.Track, keep *keeper, show func(context.Context, *views.Lab) error) (err error) {
	agreed, err := a.agree(ctx, at, toWork, tracks...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	server := newServer(*at, lesson.RewriteWith(a.rewrite), wayOn)
	server.agreed = agreed
	defer func() {
		cancel()
		err = errors.Join(err, closing(ctx, server.close))
	}()
	defer func() { a.tellKept(keep.failed()) }()
	open := func(ctx context.Context, id string) (*lab.Session, error) {
		track, err := findTrack(id)
		if err != nil {
			return nil, err
		}
		return lab.Open(ctx, lab.Options{Track: track, Cluster: server.running(), Widgets: a.widgets, Learner: at.learner,
			Outlives: at.outlives(), RewriteWith: lesson.RewriteWith(a.rewrite)})
	}
	l := &views.Lab{
		ClusterName: at.name(),
		Start:       server.start,
		Phases:      server.phases,
		Open: func(ctx context.Context, id string) (views.Session, error) {
			s, err := open(ctx, id)
			if err != nil {
				return nil, err
			}
			return keep.session(s), nil
		},
		GoOn: func(ctx context.Context, id string) (views.Session, error) {
			s, err := open(ctx, id)
			if err != nil {
				return nil, err
			}
			if err := keep.rebuild(ctx, s); err != nil {
				return nil, errors.Join(err, closing(ctx, s.Close))
			}
			return keep.session(s), nil
		},
		Left: func(ctx context.Context, id string) views.Left {
			track, err := findTrack(id)
			if err != nil {
				return views.Left{}
			}
			return keep.again(ctx, track)
		},
		Chosen:      keep.chosen(),
		Unavailable: func(ctx context.Context) (map[string]string, error) { return unavailable(ctx, server.running()) },
		Report:      writeReport,
	}
	if err := keep.damaged(); err != nil {
		a.tellKept(err)
		l.Notice = "Where you left is not known everywhere; when you quit, see why."
	}
	for _, t := range tracks {
		info := trackInfo(t)
		info.Left = keep.left(t)
		l.Tracks = append(l.Tracks, info)
	}
	err = show(ctx, l)
	if at.cluster == onKind && server.running() != nil {
		a.note("The kind cluster %s goes on, and what the lab made on it; %s removes that, crdlab cluster delete --kind-name %s the cluster.",
			at.kindName, at.reset(), at.kindName)
	} else if at.outlives() && server.running() != nil {
		a.note("What the lab made is still there; %s removes it.", at.reset())
	}
	switch {
	case errors.Is(err, views.ErrInterrupted):
		return exit(report.ExitInterrupted)
	case errors.Is(err, views.ErrStepFailed):
		return exit(report.ExitNo)
	case err == nil:
		cancel() // a start that still goes on
		return server.failed()
	}
	return err
}

// noColour says that no colours are wanted.
func (a *app) noColour() bool { return a.noColor || os.Getenv("NO_COLOR") != "" }

// canShow says whether there is a terminal that can show more than lines, and may.
func (a *app) canShow() bool {
	return !a.plain && isTerminal(a.in) && isTerminal(a.out) && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

func trackInfo(t *lesson.Track) views.TrackInfo {
	title, summary, titles := t.Describe()
	return views.TrackInfo{ID: t.ID, Group: t.Group, Title: title, Summary: summary, Strategy: t.Strategy, Minutes: t.Minutes,
		Steps: titles, Versions: t.Versions}
}

// unavailable says which tracks a cluster cannot carry, and why.
func unavailable(ctx context.Context, c cluster.Cluster) (map[string]string, error) {
	can, err := lab.Look(ctx, c)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, t := range steps.Tracks() {
		why[t.ID] = can.Unavailable(t)
	}
	return why, nil
}

// server is the API server that starts behind the first screen.
type server struct {
	place  place
	with   lesson.RewriteWith // which the cluster must offer
	phases chan views.Phase   // closed when it is live
	wayOn  string             // what to do where it has ended by itself
	agreed cluster.Cluster    // one that is there already, and is to be used; nil where one is to be started

	mu      sync.Mutex // held while it starts
	started bool
	failure error // why it did not start
	cluster cluster.Cluster
}

func newServer(at place, with lesson.RewriteWith, wayOn string) *server {
	return &server{place: at, with: with, wayOn: wayOn, phases: make(chan views.Phase)}
}

// start returns when the server is live, and tells its phases until then.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("the API server was started before")
	}
	s.started = true
	live := false
	c := s.agreed
	if c == nil {
		var err error
		c, err = s.place.open(ctx, s.wayOn, func(p cluster.Phase) {
			if live {
				return // a reset starts the server anew, and nobody listens any more
			}
			select {
			case s.phases <- views.Phase{Name: p.Name, Done: p.Done, Took: p.Took}:
			case <-ctx.Done():
			}
		})
		if err != nil {
			s.failure = err
			return err
		}
	}
	if err := offers(ctx, c, s.with); err != nil {
		s.failure = err
		return errors.Join(err, c.Close(ctx))
	}
	live = true
	s.cluster = c
	close(s.phases)
	return nil
}

// offers says whether a cluster can rewrite as it is asked to.
func offers(ctx context.Context, c cluster.Cluster, with lesson.RewriteWith) error {
	if with == lesson.WithPatch {
		return nil
	}
	can, err := lab.Look(ctx, c)
	if err != nil {
		return err
	}
	return can.CannotRewrite(with)
}

func (s *server) running() cluster.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// failed says why there was no server, once nobody waits for it any more.
func (s *server) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.failure, context.Canceled) {
		return nil // the learner was faster
	}
	return s.failure
}

// close ends the server, also one whose start the end of its context has broken off.
func (s *server) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true // a start that comes too late
	switch {
	case s.cluster != nil:
		return s.cluster.Close(ctx)
	case s.agreed != nil:
		return s.agreed.Close(ctx)
	}
	return nil
}

// writeReport writes a run as Markdown to a new file in the working folder.
func writeReport(s *lab.State) (string, error) {
	name := fmt.Sprintf("crdlab-%s-%s.md", strings.ReplaceAll(s.Track.ID, "/", "-"), time.Now().Format("20060102-150405"))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", fmt.Errorf("write the report: %w; start crdlab in a folder that can be written", err)
	}
	return name, errors.Join(report.Markdown(f, s, ""), f.Close())
}
