package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

func TestMain(m *testing.M) { os.Exit(scene.WithServer(m.Run)) }

// widgets has a field with another name at each version, and one that is at v1alpha1 alone.
var widgets = scene.Widgets(
	`{type: object, properties: {label: {type: string}, replicas: {type: integer}, color: {type: string}}}`,
	`{type: object, properties: {displayName: {type: string}, replicas: {type: integer}}}`)

var widgetMappings = []Mapping{
	{From: "v1alpha1", To: "v1beta1", Do: []Operation{Rename("spec.label", "displayName"), Stash("spec.color")}},
	{From: "v1beta1", To: "v1alpha1", Do: []Operation{Rename("spec.displayName", "label")}},
}

// fixture is a scene whose CRD is converted by a webhook.
type fixture struct {
	*scene.Scene
	webhook *Server
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{Scene: scene.New(t, widgets, scene.Namespace)}
	listener, err := f.Server.ListenWebhook(t.Context())
	f.Must(err)
	f.webhook, err = Serve(t.Context(), listener, Options{Groups: []string{f.Resource.Group}, Mappings: widgetMappings})
	f.Must(err)
	t.Cleanup(f.remove)
	f.attach()
	return f
}

// remove leaves no CRD behind whose caches would ask for a webhook that is gone.
func (f *fixture) remove() {
	ctx := context.WithoutCancel(f.Context())
	if _, err := Detach(ctx, f.Client, f.Resource); err != nil {
		f.Error(err)
	}
	if _, err := f.Client.Delete(ctx, evidence.DefinitionPath(f.Resource)); err != nil {
		f.Error(err)
	}
	if err := f.webhook.Close(); err != nil {
		f.Error(err)
	}
}

// attach makes the CRD use the webhook, and waits until the server does.
func (f *fixture) attach() {
	f.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": f.webhook.Conversion()}})
	f.Must(err)
	f.Accepted(f.Client.Patch(f.Context(), evidence.DefinitionPath(f.Resource), evidence.MergePatch, "", patch))
	f.Create("v1alpha1", "attached", `{"label":"a"}`)
	f.Until("the webhook is asked", func() bool {
		return f.Get("v1beta1", "attached").Status == http.StatusOK && f.webhook.Log().Seq() > 0
	})
	f.settle("attached")
}

// Create creates a widget, and waits until the server's caches have it: they ask the webhook for it as well.
func (f *fixture) Create(version, name, spec string) {
	f.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, f.Resource.Group, version, name, spec)
	f.Until(name+" is created", func() bool {
		resp, err := f.Client.Unrecorded().Create(f.Context(), f.Path(version, ""), "", []byte(body))
		f.Must(err)
		if replaced(resp) {
			return false
		}
		f.Must(resp.Err())
		return true
	})
	f.settle(name)
}

// replaced says that a request came to the handler that a change of the CRD has just put out of service. The server is
// well, and so is the webhook.
func replaced(resp *evidence.Response) bool {
	return resp.Status == http.StatusServiceUnavailable && holds(resp.Message, "apiserver is shutting down")
}

func (f *fixture) settle(name string) {
	f.Helper()
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		f.Until("the cache has "+name, func() bool {
			all := f.Get(version, "")
			return all.Status == http.StatusOK && holds(string(all.Body), `"name":"`+name+`"`)
		})
	}
}

// repoint gives the CRD the reference of now.
func (f *fixture) repoint() {
	f.Helper()
	done, err := f.webhook.Repoint(f.Context(), f.Client, f.Resource)
	f.Must(err)
	if !done {
		f.Fatal("the CRD does not point to the lab")
	}
}

func (f *fixture) fault(id string, change ...func(*Fault)) Fault {
	f.Helper()
	fault, err := FaultByID(id)
	f.Must(err)
	for _, c := range change {
		c(&fault)
	}
	f.Must(f.webhook.SetFault(fault))
	return fault
}

// object reads a widget, which must be there.
func (f *fixture) object(version, name string) map[string]any {
	f.Helper()
	resp := f.Get(version, name)
	f.Must(resp.Err())
	var o map[string]any
	f.Must(decode(resp.Body, &o))
	return o
}

// field is what stands at a path of an object, as text; "-" where nothing does.
func field(o map[string]any, path ...string) string {
	v, there, _ := unstructured.NestedFieldNoCopy(o, path...)
	if !there {
		return "-"
	}
	return fmt.Sprint(v)
}

// holds tells whether a text has all parts.
func holds(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
