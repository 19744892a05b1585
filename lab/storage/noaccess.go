package storage

import (
	"context"
	"errors"
	"strings"
)

// Without is a Reader for a cluster whose stored values cannot be read: whatever it is asked, its answer is why. That is an
// ErrNoAccess, also where the error given is none.
func Without(why error) Reader {
	if !errors.Is(why, ErrNoAccess) {
		why = errors.Join(ErrNoAccess, why)
	}
	return without{why}
}

type without struct{ why error }

func (w without) Get(context.Context, Resource, string, string) (*Value, error) { return nil, w.why }

func (w without) Range(context.Context, Resource, func(*Value) error) (int64, error) {
	return 0, w.why
}

func (w without) Watch(context.Context, Resource, int64) <-chan Batch {
	out := make(chan Batch, 1)
	out <- Batch{Err: w.why}
	close(out)
	return out
}

func (w without) Revision(context.Context) (int64, error) { return 0, w.why }
func (w without) Progress(context.Context) error          { return w.why }
func (w without) Close() error                            { return nil }

// Reason says why there is no access, without saying again that there is none; empty where the error says no more.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	said := ErrNoAccess.Error()
	text := err.Error()
	if at := strings.LastIndex(text, said+": "); at >= 0 { // whoever wrapped it said what for, which the reader knows
		text = text[at+len(said+": "):]
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, said), ": ")
}
