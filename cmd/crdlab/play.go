package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/views"
)

// playFlags are how a track is to be played.
type playFlags struct {
	place
	pace        time.Duration
	from, until string
	record      string
	overwrite   bool
	size        string

	width, height int // that size
}

// defaultSize is the screen of a recording that is made without a terminal.
const defaultSize = "120x30"

// maxPace is as long as anybody looks at one screen.
const maxPace = 10 * time.Minute

func (a *app) play() *cobra.Command {
	var f playFlags
	c := &cobra.Command{
		Use:   "play TRACK",
		Short: "A track that plays itself in the terminal program, to be shown or recorded",
		Long: "Plays a track in the terminal program by itself: it chooses the first option of\n" +
			"each question, applies the step, leaves the time to read, and goes on. A line on\n" +
			"the screen says what is being done. space pauses, → goes on at once, q ends it,\n" +
			"and a recording with it.\n\n" +
			"--record writes an asciicast with a marker at each step, for asciinema play. It\n" +
			"needs no terminal: without one, or with --plain, nobody sits the pauses out, and\n" +
			"they stand in the recording alone.",
		Example:           "crdlab play migrate --until switch-storage --record switch.cast",
		Args:              arguments(1, 1, "a track"),
		ValidArgsFunction: completeTrack,
		RunE: func(c *cobra.Command, args []string) error {
			track, err := findTrack(args[0])
			if err != nil {
				return err
			}
			if err := a.checkPlay(track, &f, c.Flags().Changed); err != nil {
				return err
			}
			if f.record == "" {
				return a.playTrack(c.Context(), track, f, nil)
			}
			return a.recordTrack(c.Context(), track, f)
		},
	}
	c.Flags().DurationVar(&f.pace, "pace", 2*time.Second, "how long each state stays at the least; where there is more to read, it stays longer")
	c.Flags().StringVar(&f.from, "from", "", "the first step to be played; those before it are applied at once")
	c.Flags().StringVar(&f.until, "until", "", "the last step to be played")
	c.Flags().StringVar(&f.record, "record", "", "write an asciicast to this file")
	c.Flags().BoolVar(&f.overwrite, "overwrite", false, "--record may replace a file")
	c.Flags().StringVar(&f.size, "size", defaultSize, "the size of the screen that is recorded without a terminal")
	f.place.flags(c)
	completeSteps(c, "from")
	completeSteps(c, "until")
	_ = c.MarkFlagFilename("record", "cast")
	_ = c.RegisterFlagCompletionFunc("pace", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("size", cobra.NoFileCompletions)
	return c
}

// checkPlay refuses what cannot be played, or not so.
func (a *app) checkPlay(track *lesson.Track, f *playFlags, given func(flag string) bool) error {
	from, until := 0, len(track.Steps)-1
	for _, end := range []struct {
		id string
		at *int
	}{{f.from, &from}, {f.until, &until}} {
		if end.id == "" {
			continue
		}
		i, err := findStep(track, end.id)
		if err != nil {
			return err
		}
		*end.at = i
	}
	switch {
	case from > until:
		return usage("--from %s comes after --until %s; give them the other way round", f.from, f.until)
	case f.pace <= 0 || f.pace > maxPace:
		return usage("--pace %s is no time to look at a screen; give one between 1ms and %s, for example 2s", f.pace, maxPace)
	case f.record == "" && given("record"):
		return usage("--record names no file; give one, for example play.cast")
	case f.record == "" && given("overwrite"):
		return usage("--overwrite is of --record; give that too")
	case a.canShow() && given("size"):
		return usage("--size is of a recording without a terminal, and this one has its own size; leave it out, or give --plain too")
	case a.canShow():
		if w, h, err := term.GetSize(a.out.Fd()); f.record != "" && err == nil && (w < views.MinWidth || h < views.MinHeight) {
			return usage("a window of %dx%d shows nothing to record; make it %dx%d or larger", w, h, views.MinWidth, views.MinHeight)
		}
		return nil
	case f.record == "":
		return usage("crdlab play needs a terminal to play in; give --record FILE for a recording without one, or use crdlab run %s", track.ID)
	}
	return f.parseSize()
}

// parseSize reads --size.
func (f *playFlags) parseSize() error {
	var rest string
	n, _ := fmt.Sscanf(f.size+" .", "%dx%d %s", &f.width, &f.height, &rest)
	const most = 1000
	switch {
	case n != 3 || rest != ".":
		return usage("--size %q is no size; give COLUMNSxROWS, for example %s", f.size, defaultSize)
	case f.width < views.MinWidth || f.height < views.MinHeight || f.width > most || f.height > most:
		return usage("--size %s cannot be played in; give %dx%d or more, and %dx%d or less", f.size, views.MinWidth, views.MinHeight, most, most)
	}
	return nil
}

// playTrack plays a track, and records it where there is something to write to.
func (a *app) playTrack(ctx context.Context, track *lesson.Track, f playFlags, record io.Writer) error {
	play := &views.Play{Pace: f.pace, From: f.from, Until: f.until, Record: record, Unseen: !a.canShow()}
	o := views.Options{NoColor: a.noColour(), Track: track.ID, Play: play}
	if play.Unseen {
		o.Theme, o.Profile, o.Output, o.Width, o.Height = "dark", colorprofile.TrueColor, io.Discard, f.width, f.height
	}
	return a.open(ctx, &f.place, "play it again", []*lesson.Track{track}, nil, func(ctx context.Context, l *views.Lab) error {
		err := views.Run(ctx, l, o)
		if errors.Is(err, views.ErrStepFailed) {
			a.note("crdlab: %s; crdlab run %s tells the whole of it", oneLine(err.Error()), track.ID)
		}
		return err
	})
}

// recordTrack plays a track and keeps the recording where the play came to its end. The file gets its name then, and not before.
func (a *app) recordTrack(ctx context.Context, track *lesson.Track, f playFlags) error {
	switch info, err := os.Lstat(f.record); {
	case err != nil: // there is none yet
	case !info.Mode().IsRegular(): // a folder, a device, a link: none of them is to be replaced
		return usage("%s is there, and is no file that could be replaced; give --record another name", f.record)
	case !f.overwrite:
		return usage("%s is there already; give --record another file, or --overwrite too", f.record)
	}
	part, err := os.CreateTemp(filepath.Dir(f.record), "."+filepath.Base(f.record)+".*")
	if err != nil {
		return fmt.Errorf("write the recording: %w; give --record a file in a folder that can be written", err)
	}
	to := bufio.NewWriter(part)
	err = a.playTrack(ctx, track, f, to)
	if err == nil {
		err = errors.Join(to.Flush(), part.Chmod(0o644))
	}
	if closed := part.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(part.Name(), f.record)
	}
	if err != nil {
		a.note("Nothing was recorded: the play did not come to its end.")
		return errors.Join(err, os.Remove(part.Name()))
	}
	a.note("The recording is in %s; asciinema play %s shows it.", f.record, cluster.ShellWord(f.record))
	return nil
}
