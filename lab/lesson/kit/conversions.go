package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// SwitchFault switches a fault of the webhook on, and tells the CRD where that is in its reference.
func SwitchFault(ctx context.Context, env *lesson.Env, id string) error {
	fault, err := conversion.FaultByID(id)
	if err != nil {
		return err
	}
	return env.Webhook.Switch(ctx, env.Client, env.Resource, fault)
}

// WithFault does something while the webhook has a fault, and heals it.
func WithFault(ctx context.Context, env *lesson.Env, fault string, do func() error) error {
	if err := SwitchFault(ctx, env, fault); err != nil {
		return err
	}
	err := do()
	if healed := SwitchFault(context.WithoutCancel(ctx), env, ""); err == nil {
		err = healed
	}
	return err
}

// WithoutWebhook asks for strategy None. The webhook has to go in the same patch: each without the other is refused.
const WithoutWebhook = `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`

// DropWebhook is the action that has the CRD converted without a webhook, and waits until that is in effect.
func DropWebhook() lesson.Action {
	return lesson.Action{
		ID: "none",
		Do: func(ctx context.Context, env *lesson.Env) error {
			return Replacing(ctx, env, env.Newest(), func() error { return PatchDefinition(ctx, env, WithoutWebhook) })
		},
		Kubectl: DropWebhookCommands,
		Change:  Lines("~ spec.conversion.strategy  None, and no webhook"),
	}
}

// DropWebhookCommands are the commands for WithoutWebhook.
var DropWebhookCommands = Kubectl(`kubectl patch crd CRD --type=merge -p '` + WithoutWebhook + `'`)

// ConversionsTo are the reviews that converted an object to a version.
func ConversionsTo(e lesson.Evidence, to, object string) []evidence.Conversion {
	var out []evidence.Conversion
	for _, c := range e.Conversions {
		if c.DesiredAPIVersion == e.Resource.Group+"/"+to && (object == "" || slices.Contains(c.Names, e.Namespace+"/"+object)) {
			out = append(out, c)
		}
	}
	return out
}

// Converted checks that the webhook, asked for an object at a version, answered with a field, and with what value where one
// is given.
func Converted(to, object string, value any, path ...string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		want := fmt.Sprintf("a review of %s to %s, answered with %s", object, to, strings.Join(path, "."))
		for _, c := range ConversionsTo(e, to, object) {
			if got, there := ConvertedField(c, path...); there && (value == nil || value == got) {
				return Holds(true, want, want)
			}
		}
		return Holds(false, want, "no answer had it")
	}
}

// ConvertedField reads a field out of the first object of a review's answer.
func ConvertedField(c evidence.Conversion, path ...string) (any, bool) {
	var body struct {
		Response struct{ ConvertedObjects []json.RawMessage }
	}
	if json.Unmarshal([]byte(c.Response), &body) != nil || len(body.Response.ConvertedObjects) == 0 {
		return nil, false
	}
	return (&evidence.Value{Value: body.Response.ConvertedObjects[0]}).Field(path...)
}

// ReviewedField reads a field out of the first object of a review's request.
func ReviewedField(c evidence.Conversion, path ...string) (any, bool) {
	var body struct {
		Request struct{ Objects []json.RawMessage }
	}
	if json.Unmarshal([]byte(c.Request), &body) != nil || len(body.Request.Objects) == 0 {
		return nil, false
	}
	return (&evidence.Value{Value: body.Request.Objects[0]}).Field(path...)
}
