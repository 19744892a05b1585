package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crdlab/crdlab/lab/report"
)

// exit ends the program with a code, and without a word: what there is to say was said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// done is the end of a command whose answer is an exit code.
func done(code int) error {
	if code == report.ExitGood {
		return nil
	}
	return exit(code)
}

// usage is an error of the one who typed. Its text ends with what to do.
func usage(format string, args ...any) error { return fmt.Errorf(format, args...) }

// tell writes an error as one line, and returns the exit code.
func (a *app) tell(ctx context.Context, err error) int {
	var code exit
	switch {
	case err == nil:
		return report.ExitGood
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, syscall.EPIPE):
		return report.ExitFailure // nobody is there to be told
	case ctx.Err() != nil:
		return report.ExitInterrupted
	}
	a.note("crdlab: %s", oneLine(err.Error()))
	return report.ExitFailure
}

func oneLine(s string) string {
	var out []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "; ")
}

// flagError names the flag that may have been meant.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if letter := unknown.GetSpecifiedShortnames(); letter != "" {
			return usage("%s has no flag -%s; %s --help lists them", c.CommandPath(), unknown.GetSpecifiedName(), c.CommandPath())
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return usage("%s has no flag %s%s; %s --help lists them", c.CommandPath(), name, didYouMean(name, names), c.CommandPath())
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		what := map[string]string{"int": "a number", "bool": "true or false", "duration": "a time such as 2s"}[invalid.GetFlag().Value.Type()]
		switch name := invalid.GetFlag().Name; {
		case errors.Is(err, strconv.ErrRange):
			return usage("--%s %s is no number that a computer takes; %s --help lists the flags", name, invalid.GetValue(), c.CommandPath())
		case what != "":
			return usage("--%s takes %s, and not %q; %s --help lists the flags", name, what, invalid.GetValue(), c.CommandPath())
		}
	}
	return usage("%w; %s --help lists the flags", err, c.CommandPath())
}

// arguments refuses a number of arguments that a command has no use for; what says which it wants.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s needs %s; for example: %s", c.CommandPath(), what, strings.TrimSpace(c.Example))
		case len(args) > most:
			return usage("%s has no use for %q; for example: %s", c.CommandPath(), args[most], strings.TrimSpace(c.Example))
		}
		return nil
	}
}

// oneOf refuses a value that is none of those that a flag takes.
func oneOf(flag, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return usage("%s %q is unknown%s; give %s", flag, value, didYouMean(value, values), orList(values))
}

func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// didYouMean names the word that is nearest to another, or is empty where none is near.
func didYouMean(word string, words []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, w := range words {
		d := edits(strings.ToLower(word), w)
		if len(word) > 2 && (strings.HasPrefix(w, word) || strings.Contains(w, "-"+word)) {
			d = min(d, 1)
		}
		if d < distance {
			best, distance = w, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// edits is how many letters must be put in, taken out or replaced to make one word of the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
