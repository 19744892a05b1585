package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
	"github.com/crdlab/crdlab/lab/storage"
)

// place is a scene with somebody else's widget in it, and the bench's in the same group.
type place struct {
	*scene.Scene
	bench bench.Scene
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{Scene: scene.New(t, scene.Widgets(`{type: object, properties: {label: {type: string}}}`,
		`{type: object, properties: {displayName: {type: string}}}`), scene.Namespace)}
	p.Create("v1alpha1", "neighbour", `{"label":"hello"}`)
	listener, err := p.Server.ListenWebhook(t.Context())
	p.Must(err)
	webhook, err := conversion.Serve(t.Context(), listener, conversion.Options{Groups: []string{p.Resource.Group}, Mappings: []conversion.Mapping{
		{From: "v1alpha1", To: "v1beta1", Do: []conversion.Operation{conversion.Rename("spec.label", "displayName")}},
		{From: "v1beta1", To: "v1alpha1", Do: []conversion.Operation{conversion.Rename("spec.displayName", "label")}},
	}})
	p.Must(err)
	t.Cleanup(func() { p.Must(webhook.Close()) })
	p.bench = bench.Scene{Cluster: p.Server, Client: p.Client.Unrecorded(), Webhook: webhook,
		Lab:    cluster.Scope{Resource: p.Resource, Namespace: scene.Namespace},
		Stored: "v1alpha1", Other: "v1beta1", Patience: time.Second}
	return p
}

// run runs some rows.
func (p *place) run(faults ...conversion.Fault) []bench.Cell {
	p.Helper()
	cells, err := bench.Run(p.Context(), p.bench, faults, nil)
	p.Must(err)
	return cells
}

func (p *place) fault(id string, change func(*conversion.Fault)) conversion.Fault {
	p.Helper()
	f, err := bench.FaultByID(id)
	p.Must(err)
	if change != nil {
		change(&f)
	}
	return f
}

// nothingLeft checks that all is as if there had been no bench.
func (p *place) nothingLeft() {
	p.Helper()
	resource := bench.Resource(p.Resource.Group)
	resp, err := p.Client.Get(p.Context(), evidence.DefinitionPath(resource), nil)
	p.Must(err)
	if resp.Status != http.StatusNotFound {
		p.Errorf("the CRD of the bench: %d", resp.Status)
	}
	counts, err := storage.Count(p.Context(), p.Storage, resource)
	p.Must(err)
	if len(counts.ByVersion) > 0 {
		p.Errorf("etcd still holds %v", counts.ByVersion)
	}
	if f := p.bench.Webhook.Fault(); f.ID != "" {
		p.Errorf("the webhook still has the fault %s", f.ID)
	}
}

func cell(t testing.TB, cells []bench.Cell, fault, operation, at string) bench.Cell {
	t.Helper()
	i := slices.IndexFunc(cells, func(c bench.Cell) bool { return c.Fault == fault && c.Operation == operation && c.At == at })
	if i < 0 {
		t.Fatalf("no cell of %s, %s at the %s version", fault, operation, at)
	}
	return cells[i]
}

func TestEveryFaultAndEveryOperationHaveTheirCellAndTheirProse(t *testing.T) {
	p := newPlace(t)
	before := p.Get("v1alpha1", "neighbour").Body
	crd := p.Definition().ResourceVersion
	cells := p.run(bench.Faults()...)
	for _, f := range append([]conversion.Fault{{ID: bench.None}}, conversion.Faults()...) {
		for _, o := range bench.Operations {
			for _, at := range []string{bench.Stored, bench.Other} {
				c := cell(t, cells, f.ID, o, at)
				if c.Answer == "" || c.DurationMS <= 0 || strings.Contains(c.Answer, "\n") || c.Status == 0 && !strings.HasPrefix(c.Answer, "no answer in ") {
					t.Errorf("an answer that says nothing: %+v", c)
				}
				if f.ID == bench.None && (c.Status/100 != 2 || !strings.HasSuffix(c.Answer, "as it should be") && c.Answer != "Success") {
					t.Errorf("all is well, and yet: %+v", c)
				}
				if at == bench.Stored && c.Status/100 != 2 {
					t.Errorf("at the stored version nobody needs the webhook: %+v", c)
				}
			}
		}
		text, err := bench.Prose(f.ID, cells)
		if err != nil || strings.Count(text, "\n\n") < 1 {
			t.Errorf("the prose of %s: %v, %q", f.ID, err, text)
		}
		if _, err := bench.Prose(f.ID, nil); err == nil {
			t.Errorf("the prose of %s says nothing of what the server answered", f.ID)
		}
	}
	if want := 2 * len(bench.Operations) * len(bench.Faults()); len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	for id, why := range map[string]string{
		"down": "connection reset by peer", "wrong-ca": "unknown authority", "wrong-name": "valid for", "expired-certificate": "expired",
		"wrong-service": "nobody serves it", "wrong-port": "nobody serves it", "http-404": "could not find the requested resource",
		"hang": "no answer in 1 s", "failed": "cannot convert", "wrong-uid": "response.uid", "changed-name": "the same name",
		"changed-labels": "+metadata.labels." + conversion.AddedName, "wrong-types": "spec.replicas is",
	} {
		if c := cell(t, cells, id, bench.Get, bench.Other); !strings.Contains(c.Answer, why) {
			t.Errorf("%s: %+v does not say %q", id, c, why)
		}
	}
	p.nothingLeft()
	if after := p.Get("v1alpha1", "neighbour").Body; string(after) != string(before) || p.Definition().ResourceVersion != crd {
		t.Errorf("what is not the bench's has changed: %s", after)
	}
}

func TestACellIsWhatTheFaultDoesNow(t *testing.T) {
	p := newPlace(t)
	delay := func(d time.Duration) func(*conversion.Fault) { return func(f *conversion.Fault) { f.Delay = d } }
	quick := cell(t, p.run(p.fault("slow", delay(time.Millisecond))), "slow", bench.Get, bench.Other)
	late := cell(t, p.run(p.fault("slow", delay(time.Hour))), "slow", bench.Get, bench.Other)
	if quick.Status != http.StatusOK || late.Status != 0 || late.Answer != "no answer in 1 s" {
		t.Errorf("slow: %+v, then %+v", quick, late)
	}
	one := p.run(p.fault("failed-one", nil))
	every := p.run(p.fault("failed-one", func(f *conversion.Fault) { f.Object = "" }))
	for _, o := range []string{bench.Patch, bench.Delete} {
		if a, b := cell(t, one, "failed-one", o, bench.Other), cell(t, every, "failed-one", o, bench.Other); a.Status != http.StatusOK || b.Status != http.StatusInternalServerError {
			t.Errorf("failed-one: of one object %+v, of every one %+v", a, b)
		}
	}
	p.nothingLeft()
}

func TestReviewsAreThoseThatTheWebhookSaw(t *testing.T) {
	p := newPlace(t)
	cells := p.run(conversion.Fault{}, p.fault("failed", nil), p.fault("wrong-ca", nil))
	for _, want := range []struct {
		fault, operation, at string
		reviews              int
	}{
		{bench.None, bench.Get, bench.Stored, 0}, {bench.None, bench.Get, bench.Other, 1}, {bench.None, bench.List, bench.Other, 0},
		{bench.None, bench.Create, bench.Stored, 1}, {bench.None, bench.Create, bench.Other, 3}, {bench.None, bench.Delete, bench.Other, 4},
		{"failed", bench.Get, bench.Other, 1}, {"failed", bench.Patch, bench.Other, 1}, {"wrong-ca", bench.Patch, bench.Other, 0},
	} {
		if c := cell(t, cells, want.fault, want.operation, want.at); c.Reviews != want.reviews {
			t.Errorf("%+v, want %d reviews", c, want.reviews)
		}
	}
}

func TestABenchThatIsCancelledLeavesNothing(t *testing.T) {
	for _, id := range []string{"hang", "wrong-service"} {
		p := newPlace(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		told := 0
		_, err := bench.Run(ctx, p.bench, []conversion.Fault{{}, p.fault(id, nil)}, func(c bench.Cell) {
			if told++; told == 1 {
				go func() { // ends with the fault
					for p.bench.Webhook.Fault().ID != id && t.Context().Err() == nil {
					}
					cancel()
				}()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %s: %v", id, err)
		}
		if told != 2*len(bench.Operations) {
			t.Errorf("told %d cells before %s, want the row of none", told, id)
		}
		p.nothingLeft()
	}
}

func TestWhatAKilledBenchHasLeftIsRemoved(t *testing.T) {
	p := newPlace(t)
	resource := bench.Resource(p.Resource.Group)
	crd := p.Definition()
	crd.ResourceVersion, crd.UID, crd.Name = "", "", resource.String()
	crd.Labels = map[string]string{cluster.ManagedBy: cluster.Maker}
	crd.Spec.Names.Plural, crd.Spec.Names.Singular, crd.Spec.Names.Kind, crd.Spec.Names.ListKind = resource.Plural, "benchwidget", "BenchWidget", "BenchWidgetList"
	crd.Spec.Conversion = p.bench.Webhook.Conversion()
	body, err := json.Marshal(crd)
	p.Must(err)
	p.Accepted(p.Client.Create(t.Context(), evidence.DefinitionsPath, "", body))
	for i, want := range []bool{true, false} {
		if removed, err := bench.Remove(t.Context(), p.Server, p.Resource.Group); err != nil || removed != want {
			t.Errorf("removal %d: %t, %v", i, removed, err)
		}
	}
	p.nothingLeft()
}

// TestOneObjectThatCannotBeConvertedBreaksTheListForAll: once the server fills its cache anew.
func TestOneObjectThatCannotBeConvertedBreaksTheListForAll(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"good", "bad"} {
		p.Create("v1alpha1", name, `{"label":"hello"}`)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": p.bench.Webhook.Conversion()}})
	p.Must(err)
	p.Must(p.bench.Webhook.SetFault(p.fault("failed-one", func(f *conversion.Fault) { f.Object = "bad" })))
	p.Accepted(p.Client.Patch(t.Context(), evidence.DefinitionPath(p.Resource), evidence.MergePatch, "", patch))
	p.Until("the webhook is asked", func() bool { return p.Get("v1beta1", "bad").Status == http.StatusInternalServerError })
	if good := p.Get("v1beta1", "good"); good.Status != http.StatusOK {
		t.Errorf("the good one: %d %s", good.Status, good.Message)
	}
	p.Until("the list says why it is refused", func() bool {
		list := p.Get("v1beta1", "")
		return list.Refused() && strings.Contains(list.Message, "bad")
	})
	p.Must(p.bench.Webhook.SetFault(conversion.Fault{}))
	p.Until("the list is healed", func() bool { return p.Get("v1beta1", "").Status == http.StatusOK })
}
