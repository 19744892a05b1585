package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

var gears = storage.Resource{Group: "evidence.example.com", Plural: "gears"}

// define is a CRD whose v1 is served and stored, or not; deprecated where a warning is given.
func define(storageV1 bool, warning string) []byte {
	deprecated := ""
	if warning != "" {
		deprecated = fmt.Sprintf(`"deprecated":true,"deprecationWarning":%q,`, warning)
	}
	schema := `"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"teeth":{"type":"integer"}}}}}}`
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.evidence.example.com"},
"spec":{"group":"evidence.example.com","scope":"Namespaced","names":{"kind":"Gear","plural":"gears"},"versions":[
{"name":"v1","served":true,"storage":%v,%s%s},{"name":"v2","served":true,"storage":%v,%s}]}}`, storageV1, deprecated, schema, !storageV1, schema)
}

type bench struct {
	*testing.T
	client   *evidence.Client
	log      *evidence.Log
	storage  storage.Reader
	observer *evidence.Observer
}

// observe starts a server, defines gears and observes them.
func observe(t *testing.T) *bench {
	t.Helper()
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	b := &bench{T: t, log: evidence.NewLog()}
	if b.storage, err = c.Storage(); err != nil {
		t.Fatal(err)
	}
	if b.client, err = evidence.NewClient(c.Config(), b.log); err != nil {
		t.Fatal(err)
	}
	if b.observer, err = evidence.Observe(t.Context(), b.client, b.storage, gears); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.observer.Close)
	b.apply(evidence.DefinitionPath(gears), define(true, ""))
	b.until("the CRD is served", func(*evidence.Observation) bool {
		return b.get(evidence.CollectionPath(gears, "v2", "default")).Status == http.StatusOK
	})
	return b
}

func (b *bench) apply(path string, body []byte) *evidence.Response {
	b.Helper()
	r, err := b.client.Apply(b.Context(), path, "test", true, body)
	if err != nil || r.Err() != nil {
		b.Fatal(err, r)
	}
	return r
}

func (b *bench) get(path string) *evidence.Response {
	b.Helper()
	r, err := b.client.Get(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b *bench) gear(version, name string, teeth int) *evidence.Response {
	b.Helper()
	return b.apply(evidence.ObjectPath(gears, version, "default", name),
		fmt.Appendf(nil, `{"apiVersion":"evidence.example.com/%s","kind":"Gear","metadata":{"name":%q},"spec":{"teeth":%d}}`, version, name, teeth))
}

// until waits for an observation that a function accepts.
func (b *bench) until(what string, accept func(*evidence.Observation) bool) *evidence.Observation {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	for {
		changed := b.observer.Changed()
		o, err := b.observer.Sync(ctx)
		if err != nil {
			b.Fatalf("%s: %v", what, err)
		}
		if accept(o) {
			return o
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			b.Fatalf("waited in vain until %s; the last observation: %+v", what, o)
		}
	}
}

func TestAnObservationIsOfARevisionThatHasItsBytes(t *testing.T) {
	t.Parallel()
	b := observe(t)
	b.gear("v1", "small", 12)
	o, err := b.observer.Sync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if x := o.Object("small"); x == nil || x.Stored.ModRevision > o.Revision {
		t.Errorf("at revision %d: %+v", o.Revision, x)
	}
}

func TestAnObservationHasViewsBytesAndManagersOfOneMoment(t *testing.T) {
	t.Parallel()
	b := observe(t)
	b.gear("v1", "small", 12)
	o := b.until("there is a gear", func(o *evidence.Observation) bool { return o.Object("small") != nil })
	x := o.Object("small")
	if o.Stored.Total != 1 || o.Stored.ByVersion["v1"] != 1 || !o.Stored.Access || o.ObjectsOmitted != 0 {
		t.Errorf("counts: %+v", o.Stored)
	}
	if x.StoredVersion() != "v1" || fmt.Sprint(x.Stored.ModRevision) != x.ResourceVersion || x.Stored.Size != len(x.Stored.Value) {
		t.Errorf("stored: %+v, resourceVersion %s", x.Stored, x.ResourceVersion)
	}
	for _, v := range []string{"v1", "v2"} {
		teeth, there := x.View(v).Field("spec", "teeth")
		if api, _ := x.View(v).Field("apiVersion"); !there || fmt.Sprint(teeth) != "12" || api != "evidence.example.com/"+v {
			t.Errorf("view at %s: %s", v, x.View(v).Object)
		}
	}
	if len(x.Managers) != 1 || x.Managers[0].Manager != "test" || x.Managers[0].Operation != "Apply" || x.Managers[0].APIVersion != "evidence.example.com/v1" {
		t.Errorf("managers: %+v", x.Managers)
	}
	if !reflect.DeepEqual(o.CRD.StoredVersions, []string{"v1"}) || o.StorageVersion() != "v1" || o.CRD.Strategy != "None" ||
		!reflect.DeepEqual(o.Version("v2").Fields, []string{"teeth"}) {
		t.Errorf("CRD: %+v", o.CRD)
	}
}

func TestCountsFollowWritesByIncrements(t *testing.T) {
	t.Parallel()
	b := observe(t)
	for i := range 60 {
		b.gear("v1", fmt.Sprintf("gear-%02d", i), i)
	}
	b.apply(evidence.DefinitionPath(gears), define(false, ""))
	b.until("a write is stored at v2", func(o *evidence.Observation) bool {
		b.gear("v2", "probe", 1)
		v, err := b.storage.Get(b.Context(), gears, "default", "probe")
		return err == nil && v.Version() == "v2"
	})
	for i := range 20 {
		r, err := b.client.Patch(b.Context(), evidence.ObjectPath(gears, "v2", "default", fmt.Sprintf("gear-%02d", i)), evidence.MergePatch, "", []byte(`{}`))
		if err != nil || r.Err() != nil {
			t.Fatal(err, r)
		}
	}
	if r, err := b.client.Delete(b.Context(), evidence.ObjectPath(gears, "v2", "default", "gear-59")); err != nil || r.Err() != nil {
		t.Fatal(err, r)
	}
	o, err := b.observer.Rest(b.Context())
	if err != nil {
		t.Fatal(err)
	}
	counted, err := storage.Count(b.Context(), b.storage, gears)
	if err != nil {
		t.Fatal(err)
	}
	if o.Stored.Total != 60 || !reflect.DeepEqual(o.Stored.ByVersion, counted.ByVersion) || o.Stored.ByVersion["v2"] != 21 {
		t.Errorf("by increments %+v, counted anew %+v", o.Stored, counted)
	}
	if len(o.Objects) > evidence.MaxObjects || o.ObjectsOmitted != 60-len(o.Objects) {
		t.Errorf("%d objects held, %d omitted", len(o.Objects), o.ObjectsOmitted)
	}
	if !reflect.DeepEqual(o.CRD.StoredVersions, []string{"v1", "v2"}) {
		t.Errorf("storedVersions %v", o.CRD.StoredVersions)
	}
}

func TestASelectedObjectIsHeldAmongMany(t *testing.T) {
	t.Parallel()
	b := observe(t)
	for i := range evidence.MaxObjects + 30 {
		b.gear("v1", fmt.Sprintf("gear-%02d", i), i)
	}
	o, err := b.observer.Rest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	missing := ""
	for i := range evidence.MaxObjects + 30 {
		if name := fmt.Sprintf("gear-%02d", i); o.Object(name) == nil {
			missing = name
			break
		}
	}
	if missing == "" {
		t.Fatal("all are held")
	}
	b.observer.Select("default", missing)
	o = b.until("it is held", func(o *evidence.Observation) bool { return o.Object(missing).View("v2") != nil })
	if len(o.Objects) > evidence.MaxObjects {
		t.Errorf("%d objects are held", len(o.Objects))
	}
}

func TestProbesAreLeftOut(t *testing.T) {
	t.Parallel()
	b := observe(t)
	b.gear("v1", evidence.ProbePrefix+"1", 1)
	b.gear("v1", "real", 1)
	o := b.until("the gear is there", func(o *evidence.Observation) bool { return o.Object("real") != nil })
	if o.Stored.Total != 1 || len(o.Objects) != 1 {
		t.Errorf("%+v", o)
	}
}

func TestADeletedDefinitionIsSeen(t *testing.T) {
	t.Parallel()
	b := observe(t)
	b.gear("v1", "small", 1)
	if r, err := b.client.Delete(t.Context(), evidence.DefinitionPath(gears)); err != nil || r.Err() != nil {
		t.Fatal(err, r)
	}
	o := b.until("the CRD is gone, and what was stored", func(o *evidence.Observation) bool { return o.CRD == nil && o.Stored.Total == 0 })
	if len(o.Objects) != 0 || o.StorageVersion() != "" || o.Lists("v1") {
		t.Errorf("%+v", o)
	}
}

func TestAnExchangeKeepsWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	b := observe(t)
	b.apply(evidence.DefinitionPath(gears), define(true, "gears: use v2"))
	b.until("v1 warns", func(*evidence.Observation) bool {
		return len(b.get(evidence.CollectionPath(gears, "v1", "default")).Warnings) > 0
	})
	if r := b.get(evidence.CollectionPath(gears, "v1", "default")); !reflect.DeepEqual(r.Warnings, []string{"gears: use v2"}) {
		t.Errorf("warnings: %q", r.Warnings)
	}
	if r := b.get(evidence.CollectionPath(gears, "v2", "default")); len(r.Warnings) != 0 {
		t.Errorf("warnings at v2: %q", r.Warnings)
	}
	from := b.log.Seq()
	r, err := b.client.Patch(t.Context(), evidence.DefinitionPath(gears), evidence.JSONPatch, "test", []byte(`[{"op":"remove","path":"/spec/versions/0"},{"op":"replace","path":"/spec/versions/0/storage","value":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	logged := b.log.Since(from)
	if len(logged) != 1 || !reflect.DeepEqual(logged[0], r.Exchange) {
		t.Fatalf("the log has %+v", logged)
	}
	x := logged[0]
	if x.Actor != evidence.ByStep || x.Status != http.StatusUnprocessableEntity || x.Reason != "Invalid" || len(x.Causes) != 1 || x.Causes[0].Field != "status.storedVersions[0]" || x.Message == "" {
		t.Errorf("%+v", x)
	}
	if !apierrors.IsInvalid(r.Err()) {
		t.Errorf("the error is %v", r.Err())
	}
	plain := b.get(evidence.CollectionPath(gears, "v9", "default"))
	if plain.Status != http.StatusNotFound || plain.Reason != "" || plain.Message != "404 page not found" || !apierrors.IsNotFound(plain.Err()) {
		t.Errorf("a version that is not served: %+v, %v", plain.Exchange, plain.Err())
	}
}

func TestARequestWithoutAnAnswerIsRecordedAsSuch(t *testing.T) {
	t.Parallel()
	b := observe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	from := b.log.Seq()
	if _, err := b.client.Get(ctx, "/version", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if xs := b.log.Since(from); len(xs) != 1 || xs[0].Status != 0 || xs[0].Message == "" {
		t.Errorf("the log has %+v", xs)
	}
}

func TestTheLogForgetsTheOldestFirst(t *testing.T) {
	log := evidence.NewLog()
	const n = 10_000
	for i := range n {
		log.Add(evidence.Exchange{Status: i})
	}
	all := log.Since(0)
	if len(all) == 0 || len(all) >= n || all[len(all)-1].Seq != n || all[0].Seq != n-len(all)+1 {
		t.Fatalf("%d are held, from %d", len(all), all[0].Seq)
	}
	if last := log.Since(n - 3); len(last) != 3 || last[0].Status != n-3 {
		t.Errorf("the last three: %+v", last)
	}
	if log.Since(n) != nil {
		t.Error("there is something after the last")
	}
}
