package kit

import (
	"context"
	"strings"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

// Judge asks whether the migration is complete, so that the track's oldest version may be dropped.
func Judge(ctx context.Context, env *lesson.Env) error { return JudgeDrop(ctx, env, env.Oldest()) }

// JudgeDrop asks whether a version may be dropped.
func JudgeDrop(ctx context.Context, env *lesson.Env, version string) (err error) {
	env.Verdict, err = verdict.Of(ctx, verdict.Query{Client: env.Client, Storage: env.Storage, Resource: env.Resource, Drop: []string{version}})
	return err
}

// WhichVerdict is the question what the verdict will be.
func WhichVerdict() *lesson.Prediction {
	return &lesson.Prediction{
		Options: []string{string(verdict.Complete), string(verdict.Incomplete), string(verdict.Unknown)},
		Answer: func(e lesson.Evidence) (string, error) {
			if e.Verdict == nil {
				return "", lesson.ErrNoAnswer
			}
			return string(e.Verdict.Verdict), nil
		},
	}
}

// Complete checks that the verdict is so.
func Complete(e lesson.Evidence) lesson.Outcome {
	if e.Verdict == nil {
		return lesson.Holds(false, string(verdict.Complete), "nobody looked")
	}
	return lesson.Expected(verdict.Complete, e.Verdict.Verdict)
}

// Finding checks how one finding of the verdict came out.
func Finding(id string, want verdict.Result) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		if e.Verdict == nil {
			return lesson.Holds(false, string(want), "nobody looked")
		}
		f := e.Verdict.Finding(id)
		if f == nil {
			return lesson.Holds(false, string(want), "no finding "+id)
		}
		return lesson.Expected(want, f.Result)
	}
}

// EveryFinding checks that each finding of the verdict passes.
func EveryFinding(e lesson.Evidence) lesson.Outcome {
	const want = "every finding passes"
	if e.Verdict == nil {
		return lesson.Holds(false, want, "nobody looked")
	}
	var other []string
	for _, f := range e.Verdict.Findings {
		if f.Result != verdict.Pass {
			other = append(other, f.ID+": "+string(f.Result))
		}
	}
	return Holds(len(other) == 0, want, strings.Join(other, ", "))
}
