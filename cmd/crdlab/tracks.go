package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/steps"
)

func (a *app) tracks() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:     "tracks",
		Short:   "Every track and its steps",
		Example: "crdlab tracks -o json",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			list := report.NewTrackList(steps.Tracks())
			if format == formatJSON {
				return report.WriteJSON(a.out, list)
			}
			return a.text().Tracks(list)
		},
	}
	outputFlag(c, &format, formatText, formatJSON)
	return c
}

// findTrack returns a track by its id; the error names the one that may have been meant.
func findTrack(id string) (*lesson.Track, error) {
	var ids []string
	for _, t := range steps.Tracks() {
		if t.ID == id {
			return t, nil
		}
		ids = append(ids, t.ID)
	}
	return nil, usage("there is no track %q%s; crdlab tracks lists them", id, didYouMean(id, ids))
}

// findStep returns the index of a step; the error names the one that may have been meant.
func findStep(t *lesson.Track, id string) (int, error) {
	ids := stepIDs(t)
	if i := slices.Index(ids, id); i >= 0 {
		return i, nil
	}
	return 0, usage("the track %s has no step %q%s; crdlab tracks lists them", t.ID, id, didYouMean(id, ids))
}

func stepIDs(t *lesson.Track) []string {
	var ids []string
	for _, s := range t.Steps {
		ids = append(ids, s.ID)
	}
	return ids
}

// completeTrack completes the id of a track, then that of one of its steps.
func completeTrack(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []string
	switch len(args) {
	case 0:
		for _, t := range steps.Tracks() {
			out = append(out, t.ID)
		}
	case 1:
		if t, err := findTrack(args[0]); err == nil {
			out = stepIDs(t)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeSteps completes a flag with the steps of the track that is the command's argument.
func completeSteps(c *cobra.Command, flag string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeTrack(nil, args[:min(len(args), 1)], "")
	})
}
