// Package report tells a recorded run, or a verdict, to a reader: as text for a terminal, as JSON for a program, as
// Markdown for a page. It adds nothing: what it says stands in the lab.State or the verdict.Verdict that it is given.
//
// Text is told step by step while the run goes on (Text.Begin, Text.Step, Text.End); JSON and Markdown are documents
// of a whole run.
package report

import (
	"slices"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

// Exit codes of the program. Usage errors and failures of the machine are ExitFailure, whatever the run had shown.
const (
	ExitGood        = 0   // done, and the answer is yes
	ExitNo          = 1   // a check failed, or the migration is incomplete
	ExitFailure     = 2   // wrong usage, or it could not be done
	ExitUnknown     = 3   // cannot tell: a check that was needed was skipped
	ExitInterrupted = 130 // by Ctrl-C or a signal
)

// ExitCode is the exit code of a run, or of anything else that has a lesson.Result.
func ExitCode(r lesson.Result) int {
	switch r {
	case lesson.Passed:
		return ExitGood
	case lesson.Failed:
		return ExitNo
	}
	return ExitUnknown
}

// VerdictExitCode is the exit code of a verdict.
func VerdictExitCode(a verdict.Answer) int {
	switch a {
	case verdict.Complete:
		return ExitGood
	case verdict.Incomplete:
		return ExitNo
	}
	return ExitUnknown
}

// Result is how a run went up to a step, or to the track's end where until is empty: failed where any step of it
// failed; unknown where a step was not reached, or a check was skipped; else passed.
func Result(s *lab.State, until string) lesson.Result {
	result := lesson.Passed
	for _, step := range s.Steps {
		switch r := stepResult(step); {
		case r == lesson.Failed:
			return lesson.Failed
		case r == lesson.Skipped, skipsChecks(step):
			result = lesson.Unknown
		}
		if step.ID == until {
			break
		}
	}
	return result
}

// Interrupted is the state of a run that was interrupted, as it is to be told: the step that was under way has not
// failed, it was not brought to its end.
func Interrupted(s *lab.State) *lab.State {
	told := *s
	told.Steps = slices.Clone(s.Steps)
	for i, step := range told.Steps {
		if step.Err != nil && step.Phase != lab.Applied {
			broken := *step
			broken.Err = nil
			told.Steps[i] = &broken
		}
	}
	return &told
}

// stepResult is passed, failed or skipped: a step that was not applied was skipped.
func stepResult(s *lab.Step) lesson.Result {
	switch {
	case s.Err != nil:
		return lesson.Failed
	case s.Phase != lab.Applied || s.Result == "":
		return lesson.Skipped
	}
	return s.Result
}

func skipsChecks(s *lab.Step) bool {
	for _, c := range s.Checks {
		if c.Result == lesson.Skipped {
			return true
		}
	}
	return false
}

// tally says how many steps of a run went how.
func tally(s *lab.State) string {
	var passed, failed, unknown, left int
	for _, step := range s.Steps {
		switch r := stepResult(step); {
		case r == lesson.Passed:
			passed++
		case r == lesson.Failed:
			failed++
		case step.Phase == lab.Applied:
			unknown++
		default:
			left++
		}
	}
	told := plural(passed, "step") + " passed"
	for _, part := range []struct {
		n    int
		what string
	}{{failed, "failed"}, {unknown, "with checks that could not be made"}, {left, "not run"}} {
		if part.n > 0 {
			told += ", " + Number(part.n) + " " + part.what
		}
	}
	return told
}
