package conversion

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
)

// seen is what a GET at the other version is, while a fault is on.
type seen struct {
	message []string                                  // parts of the 500's message
	object  func(t *testing.T, o map[string]any)      // where it is 200
	log     func(t *testing.T, c evidence.Conversion) // nil: nothing is in the log
}

func refused(parts ...string) seen { return seen{message: parts} }

func (s seen) logged(result string, parts ...string) seen {
	s.log = func(t *testing.T, c evidence.Conversion) {
		if c.Result != result || !holds(c.Message, parts...) {
			t.Errorf("in the log: %s, %q; want %s, %q", c.Result, c.Message, result, parts)
		}
	}
	return s
}

func served(fields map[string]string, path ...string) seen {
	return seen{object: func(t *testing.T, o map[string]any) {
		for f, want := range fields {
			if got := field(o, append(slices.Clone(path), f)...); got != want {
				t.Errorf("%v %s is %s, want %s", path, f, got, want)
			}
		}
	}}
}

var effects = map[string]seen{
	"down":                refused("connection reset by peer"),
	"wrong-ca":            refused("certificate signed by unknown authority"),
	"wrong-name":          refused("certificate is valid for not-crdlab-webhook.crdlab.svc, not crdlab-webhook.crdlab.svc"),
	"expired-certificate": refused("certificate has expired"),
	"wrong-service":       refused("not-crdlab-webhook", "nobody serves it"),
	"wrong-port":          refused("port 444", "nobody serves it"),
	"http-404":            refused("could not find the requested resource").logged("HTTP 404, no ConversionReview", "fault http-404"),
	"http-500":            refused("an error on the server", "the webhook has a fault of its own").logged("HTTP 500, no ConversionReview", "fault http-500"),
	"not-json":            refused("json parse error").logged("HTTP 200, no ConversionReview", "fault not-json"),
	"wrong-uid":           refused("expected response.uid=", `got "not-`).logged("Success", "fault wrong-uid"),
	"fewer-objects":       refused("returned 0 objects, expected 1").logged("Success", "fault fewer-objects"),
	"failed":              refused("failed: the webhook cannot convert today").logged("Failed", "cannot convert today"),
	"failed-one":          refused("failed: Widget crdlab/one: the webhook cannot convert this one").logged("Failed", "crdlab/one"),
	"wrong-api-version":   refused("invalid groupVersion (expected ", "/v1beta1, received ", "/v1alpha1)").logged("Success", "fault wrong-api-version"),
	"wrong-kind":          refused("invalid kind (expected Widget, received NotWidget)").logged("Success", "fault wrong-kind"),
	"changed-name":        refused("must have the same name: one != not-one").logged("Success", "fault changed-name"),
	"changed-uid":         refused("must have the same UID").logged("Success", "fault changed-uid"),
	"changed-labels": {object: func(t *testing.T, o map[string]any) {
		for _, f := range []string{"labels", "annotations"} {
			if got := field(o, "metadata", f, AddedName); got != "webhook" {
				t.Errorf("the webhook's %s are not taken: %s", f, got)
			}
		}
	}},
	"changed-finalizers": served(map[string]string{"finalizers": "-"}, "metadata"),
	"undeclared-fields":  served(map[string]string{"undeclared": "-", "displayName": "hello"}, "spec"),
	"wrong-types":        served(map[string]string{"displayName": "5", "replicas": "3"}, "spec"),
	"slow":               served(map[string]string{"displayName": "hello", "replicas": "3"}, "spec"),
}

func TestEveryFaultShowsAtTheOtherVersionAndIsHealedAtOnce(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "one", `{"label":"hello","replicas":3}`)
	for _, fault := range Faults() {
		want, known := effects[fault.ID]
		if fault.ID == "hang" { // it shows nothing
			continue
		}
		t.Run(fault.ID, func(t *testing.T) {
			if !known || fault.Does == "" {
				t.Fatal("nobody says what it does")
			}
			fault.Delay = min(fault.Delay, time.Millisecond)
			f.Must(f.webhook.SetFault(fault))
			if fault.ChangesCRD {
				f.repoint()
				f.Until("the server has the reference", func() bool { return f.Get("v1beta1", "one").Status != http.StatusOK })
			}
			before := f.webhook.Log().Seq()
			got := f.Get("v1beta1", "one")
			want.compare(t, got, f.webhook.Log().Since(before))
			if own := f.Get("v1alpha1", "one"); own.Status != http.StatusOK {
				t.Errorf("at the stored version: %d %s", own.Status, own.Message)
			}
			f.Must(f.webhook.SetFault(Fault{}))
			if fault.ChangesCRD {
				f.repoint()
				f.Until("the server has the reference", func() bool { return f.Get("v1beta1", "one").Status == http.StatusOK })
				f.settle("one")
			}
			o := f.object("v1beta1", "one")
			if field(o, "spec", "displayName") != "hello" || field(o, "metadata", "labels", AddedName) != "-" {
				t.Errorf("not healed: %v", o)
			}
		})
	}
}

func (want seen) compare(t *testing.T, got *evidence.Response, log []evidence.Conversion) {
	t.Helper()
	if want.object != nil {
		var o map[string]any
		if err := decode(got.Body, &o); err != nil || got.Status != http.StatusOK {
			t.Fatalf("%d %s (%v)", got.Status, got.Message, err)
		}
		want.object(t, o)
		return
	}
	if got.Status != http.StatusInternalServerError || !holds(got.Message, want.message...) {
		t.Errorf("%d %q, want 500 with %q", got.Status, got.Message, want.message)
	}
	switch {
	case want.log == nil && len(log) > 0:
		t.Errorf("the webhook was reached: %+v", log)
	case want.log != nil && len(log) != 1:
		t.Errorf("%d reviews, want one", len(log))
	case want.log != nil:
		want.log(t, log[0])
	}
}

func TestWrongTypesAreServedUnchecked(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "one", `{"label":"hello","replicas":3}`)
	f.fault("wrong-types")
	spec := f.object("v1beta1", "one")["spec"].(map[string]any)
	if _, text := spec["replicas"].(string); !text {
		t.Errorf("replicas, an integer in the schema, is a %T", spec["replicas"])
	}
	if _, text := spec["displayName"].(string); text {
		t.Error("displayName, a string in the schema, still is one")
	}
}

func TestFailedOneFailsForThatObjectOnly(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"good", "bad"} {
		f.Create("v1alpha1", name, `{"label":"hello"}`)
	}
	f.fault("failed-one", func(x *Fault) { x.Object = "bad" })
	if got := f.Get("v1beta1", "bad"); got.Status != http.StatusInternalServerError {
		t.Errorf("the bad one: %d", got.Status)
	}
	if got := f.Get("v1beta1", "good"); got.Status != http.StatusOK {
		t.Errorf("the good one: %d %s", got.Status, got.Message)
	}
}

// getting starts a GET at the other version, and waits until it is with the webhook.
func (f *fixture) getting(name string) <-chan *evidence.Response {
	f.Helper()
	out := make(chan *evidence.Response, 1)
	waiting := f.webhook.Waiting()
	go func() {
		resp, err := f.Client.Unrecorded().Get(context.WithoutCancel(f.Context()), f.Path("v1beta1", name), nil)
		if err != nil {
			f.Error(err)
		}
		out <- resp
	}()
	f.Until("the webhook waits", func() bool { return f.webhook.Waiting() > waiting })
	return out
}

func TestAnAnswerThatWaitsEndsWhenTheFaultDoes(t *testing.T) {
	for _, id := range []string{"hang", "slow"} {
		f := newFixture(t)
		f.Create("v1alpha1", "one", `{"label":"hello"}`)
		f.fault(id, func(x *Fault) { x.Delay = time.Hour })
		got := f.getting("one")
		f.Must(f.webhook.SetFault(Fault{}))
		if resp := <-got; resp == nil || resp.Status != http.StatusOK {
			t.Errorf("%s: after it was healed: %+v", id, resp)
		}
	}
}

func TestAnAnswerThatWaitsDoesNotHoldUpClose(t *testing.T) {
	for _, id := range []string{"hang", "slow"} {
		f := newFixture(t)
		f.Create("v1alpha1", "one", `{"label":"hello"}`)
		f.fault(id, func(x *Fault) { x.Delay = time.Hour })
		got := f.getting("one")
		f.Must(f.webhook.Close())
		if resp := <-got; resp == nil || resp.Status != http.StatusInternalServerError {
			t.Errorf("%s: after the webhook closed: %+v", id, resp)
		}
		if n := f.webhook.Waiting(); n != 0 {
			t.Errorf("%s: %d answers are still waited for", id, n)
		}
	}
}

func TestAFaultOnTopOfAnotherTakesItsPlace(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "one", `{"label":"hello"}`)
	for _, id := range []string{"down", "wrong-ca", "wrong-name", "failed", "down", "wrong-uid"} {
		f.fault(id)
		if got := f.Get("v1beta1", "one"); !holds(got.Message, effects[id].message...) {
			t.Errorf("%s: %d %q", id, got.Status, got.Message)
		}
	}
	if err := f.webhook.SetFault(Fault{ID: "bad-weather"}); err == nil || f.webhook.Fault().ID != "wrong-uid" {
		t.Errorf("an unknown fault: %v, on is %+v", err, f.webhook.Fault())
	}
}
