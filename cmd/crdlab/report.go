package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab"
	kept "github.com/crdlab/crdlab/lab/progress"
	"github.com/crdlab/crdlab/lab/report"
)

// reportFlags are which results a report is of.
type reportFlags struct {
	learner, track string
	format         string
}

func (a *app) report() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [FILE|FOLDER...]",
		Short: "Who got where: the results of learners",
		Long: "Without an argument: your own results, and those of all learners whose progress is\n" +
			"in your state folder. With files and folders that you have collected, those of a\n" +
			"class: then also how many did each step, how many predicted it rightly at the\n" +
			"first try, and how long they took.\n\n" +
			"A learner's progress is in ~/.local/state/crdlab/progress, one file a track. It is\n" +
			"written by the lab in the terminal, and not by crdlab run. Where a file cannot be\n" +
			"read, it is named, the others are reported, and the exit code is 2.",
		Example: "crdlab report class/ -o markdown",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c.Flags().Changed); err != nil {
				return err
			}
			return a.tellReport(args, f)
		},
	}
	c.Flags().StringVar(&f.learner, "learner", "", "the results of this learner alone")
	c.Flags().StringVar(&f.track, "track", "", "the results in this track alone")
	_ = c.RegisterFlagCompletionFunc("learner", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("track", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeTrack(nil, nil, "")
	})
	outputFlag(c, &f.format, formatText, formatJSON, formatMarkdown)
	return c
}

// check refuses what nobody can have results of.
func (f *reportFlags) check(given func(flag string) bool) error {
	if given("learner") && f.learner == "" {
		return usage("--learner is empty; give a name, for example ana, or leave it out for all")
	}
	if err := lab.CheckLearner(f.learner); err != nil {
		return usage("--learner %w", err)
	}
	if given("track") {
		_, err := findTrack(f.track)
		return err
	}
	return nil
}

// tellReport tells what can be read, and then what cannot.
func (a *app) tellReport(paths []string, f reportFlags) error {
	found, unread := collect(paths)
	found = slices.DeleteFunc(found, func(p kept.Found) bool {
		return f.learner != "" && p.Learner != f.learner || f.track != "" && p.Track != f.track
	})
	r := report.NewReport(found, len(paths) == 0)
	var told error
	switch {
	case f.format == formatJSON:
		told = report.WriteJSON(a.out, r)
	case len(found) == 0 && unread == nil:
		a.note("There are no results%s. crdlab begins a lesson, and keeps what you do in it; crdlab tracks lists the lessons.", f.of())
	case len(found) == 0:
	case f.format == formatMarkdown:
		told = report.MarkdownReport(a.out, r)
	default:
		told = a.text().Report(r)
	}
	if unread != nil {
		unread = usage("%w; give files and folders with the progress of learners, as crdlab keeps it", unread)
	}
	return errors.Join(told, unread)
}

// of says of whom and of what a report is that has nothing in it.
func (f *reportFlags) of() string {
	out := ""
	if f.learner != "" {
		out += " of " + f.learner
	}
	if f.track != "" {
		out += " in the track " + f.track
	}
	return out
}

// collect reads the files that are named, or else the user's own.
func collect(paths []string) ([]kept.Found, error) {
	if len(paths) > 0 {
		return kept.Read(paths...)
	}
	own, err := kept.Own()
	if err != nil {
		return nil, err
	}
	return own.All()
}
