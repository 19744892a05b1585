package webhook

import (
	"context"

	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// readUnder is an action that reads an object at the new version while the webhook has a fault.
func readUnder(id, fault, object, says string, expect lesson.Expect) lesson.Action {
	return lesson.Action{
		ID: id,
		Do: func(ctx context.Context, env *lesson.Env) error {
			return kit.WithFault(ctx, env, fault, func() error { return kit.Get(ctx, env, newVersion, object) })
		},
		Change: kit.Lines(says),
		Expect: expect,
	}
}
