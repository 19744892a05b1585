package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/report"
)

// runFlags are what a run may be asked for.
type runFlags struct {
	place
	until  string
	clean  bool
	faults bool
	format string
}

func (a *app) run() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run TRACK",
		Short: "All steps of a track, without the terminal program",
		Long: "Runs the steps of a track one after the other and tells each with its action,\n" +
			"its evidence and its checks. Exit code 0: every check passed; 1: one failed;\n" +
			"3: one could not be made; 2: the run could not be done.\n\n" +
			"Without --kubeconfig, --context or --cluster it runs on an API server of its own,\n" +
			"which is gone afterwards. A kubeconfig without a context is that of crdlab serve.\n" +
			"What an earlier run made is removed first, and only that.",
		Example:           "crdlab run migrate --until switch-storage",
		Args:              arguments(1, 1, "a track"),
		ValidArgsFunction: completeTrack,
		RunE: func(c *cobra.Command, args []string) error {
			track, err := findTrack(args[0])
			if err != nil {
				return err
			}
			if f.until != "" {
				if _, err := findStep(track, f.until); err != nil {
					return err
				}
			}
			if f.faults {
				if err := f.benchable(track); err != nil {
					return err
				}
			}
			return a.runTrack(c.Context(), track, f)
		},
	}
	c.Flags().StringVar(&f.until, "until", "", "the last step to be run")
	c.Flags().BoolVar(&f.clean, "clean", false, "remove at the end what the run made; matters where the cluster goes on")
	c.Flags().BoolVar(&f.faults, "faults", false, "not the steps, but what every fault of the webhook does to every operation")
	f.place.flags(c)
	outputFlag(c, &f.format, formatText, formatJSON, formatMarkdown)
	completeSteps(c, "until")
	return c
}

// runTrack runs a track on a cluster, tells it, and leaves the cluster as it was asked to.
func (a *app) runTrack(ctx context.Context, track *lesson.Track, f runFlags) (err error) {
	what := toWork
	if f.faults {
		what = toTryFaults
	}
	c, err := a.agree(ctx, &f.place, what, track)
	if err != nil {
		return err
	}
	progress := a.progress()
	defer progress.end()
	if c == nil {
		progress.say("starting the API server")
		c, err = f.open(ctx, "run it again", func(p cluster.Phase) {
			if f.cluster == onKind {
				progress.say(p.Name)
			}
		})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(ctx, c.Close)) }()
	s, err := lab.Open(ctx, lab.Options{Track: track, Cluster: c, Widgets: a.widgets, Learner: f.learner, Outlives: f.outlives(),
		RewriteWith: lesson.RewriteWith(a.rewrite)})
	if err != nil {
		return cutOff(ctx, c, err)
	}
	defer func() { err = errors.Join(err, closing(ctx, s.Close)) }()
	progress.follow(s)
	tell := a.tellRun
	if f.faults {
		tell = a.tellFaults
	}
	if err := tell(ctx, s, f, progress); err != nil {
		return err
	}
	progress.end()
	switch {
	case !f.outlives(): // it goes with the server
	case f.clean:
		if err := cluster.Clean(ctx, c, s.Scope()); err != nil {
			return err
		}
	case f.faults: // the bench is gone
	default:
		a.note("What the run made is still there; %s removes it.", f.reset())
	}
	if f.cluster == onKind {
		a.note("The kind cluster %s goes on; crdlab cluster delete --kind-name %s removes it.", f.kindName, f.kindName)
	}
	if f.faults {
		return nil
	}
	return done(report.ExitCode(report.Result(s.State(), f.until)))
}

// tellRun runs the steps and writes what was seen. A run that breaks off is told as far as it came; of one that was
// interrupted, the step that was under way has not failed.
func (a *app) tellRun(ctx context.Context, s *lab.Session, f runFlags, progress *progress) error {
	switch f.format {
	case formatJSON:
		failure := lab.Run(ctx, s, f.until, func(*lab.Step) {})
		progress.end()
		return errors.Join(report.WriteJSON(a.out, report.NewRun(asItCame(ctx, s), f.until)), failure)
	case formatMarkdown:
		failure := lab.Run(ctx, s, f.until, func(*lab.Step) {})
		progress.end()
		return errors.Join(report.Markdown(a.out, asItCame(ctx, s), f.until), failure)
	}
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	text := a.text()
	told := progress.hide(func() error { return text.Begin(s.State()) })
	failure := lab.Run(reading, s, f.until, func(step *lab.Step) {
		if told == nil {
			told = progress.hide(func() error { return text.Step(s.State(), step) })
		}
		if told != nil {
			stop(told) // nobody reads any more
		}
	})
	progress.end()
	switch {
	case told != nil:
	case failure != nil && ctx.Err() != nil:
		told = text.Interrupted(s.State())
	default:
		told = text.End(s.State(), f.until)
	}
	return errors.Join(told, failure)
}

// asItCame is the state of a session whose run has ended.
func asItCame(ctx context.Context, s *lab.Session) *lab.State {
	if ctx.Err() != nil {
		return report.Interrupted(s.State())
	}
	return s.State()
}
