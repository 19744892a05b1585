package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/storage"
)

// ProbePrefix begins the names of objects that the lab makes for a moment, to see whether something is in effect. They
// are left out of observations and their counts.
const ProbePrefix = "crdlab-probe-"

// rereads is how long after a change of the CRD views are read again. The API server answers the change before its handler
// has taken it up: mostly within a few milliseconds, seldom after more than a tenth of a second. No event tells when.
var rereads = []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond, 160 * time.Millisecond,
	410 * time.Millisecond, 1010 * time.Millisecond}

// adopt is how many changes within bulkWindow make the observer hold the changed objects. More of them are bulk work, of
// which the counts tell enough; to read every object again would cost the server more than the work itself.
const (
	adopt      = 8
	bulkWindow = 250 * time.Millisecond
)

// pulseEvery is how often the observer makes sure that etcd and the API server are still there, and answer.
const pulseEvery = 2 * time.Second

// bearable is how long those who wait for an observation bear with a cluster that cannot be followed.
const bearable = 20 * time.Second

// longestPause is how long the observer waits at the most before it asks again a server that asked it to wait.
const longestPause = 10 * time.Second

// Observer keeps a store of what a lab's CRD and objects look like, fed by one watch of etcd, and publishes it as
// observations. Counts are kept by increments; views are read by GET whenever their object or the CRD changes.
type Observer struct {
	client   *Client
	storage  storage.Reader
	resource storage.Resource
	pinned   []string // names of objects that are always held

	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	latest  *Observation
	changed chan struct{}
	idle    bool // nothing is left to be read
	seen    int64
	trouble error
	blind   error  // why etcd cannot be read; nil where it can
	chosen  string // the key of the selected object

	// The store: of the loop's goroutine alone.
	crd    *CRD
	counts storage.Counts
	held   map[string]*Object
	used   map[string]int64 // held key: when it was last changed or selected
	names  chan selection
	again  chan struct{} // of one: the views are to be read again

	reading chan struct{} // of one: who has put something in reads objects, or keeps others from it

	window  time.Time // when the counting of changes began last
	changes int       // since then
	stale   bool      // objects have changed in bulk, and their views were not read again yet

	// Where etcd cannot be read:
	asked      chan chan struct{} // those who wait for everything to be read again
	crdChanged time.Time
}

type selection struct{ namespace, name string }

// Observe loads the store and follows the cluster until the context ends or Close is called. The objects whose names are
// given are always held whole.
func Observe(ctx context.Context, client *Client, from storage.Reader, resource storage.Resource, pinned ...string) (*Observer, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &Observer{client: client.As(ByObserver).Unrecorded(), storage: from, resource: resource, pinned: pinned, cancel: cancel,
		ended: make(chan struct{}), changed: make(chan struct{}), names: make(chan selection, 16), again: make(chan struct{}, 1), asked: make(chan chan struct{}), reading: make(chan struct{}, 1)}
	if from == nil {
		o.storage = storage.Without(storage.ErrNoAccess)
	}
	err := o.load(ctx)
	if o.lost(err) {
		err = o.loadFromAPI(ctx)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("observe %s: %w", resource, err)
	}
	o.publish(true)
	go o.run(ctx)
	return o, nil
}

// Close ends the observer.
func (o *Observer) Close() {
	o.cancel()
	<-o.ended
}

// Latest is the newest observation, and the error that keeps it from being newer, if there is one.
func (o *Observer) Latest() (*Observation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest, o.trouble
}

// Changed is closed when there is a newer observation, or the observer has come to rest.
func (o *Observer) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// Select holds an object whole from now on.
func (o *Observer) Select(namespace, name string) {
	select {
	case o.names <- selection{namespace, name}:
	default: // a learner who skips through many objects: the last ones count, and there will be another
	}
}

// Reread reads all views again, now and a few times more within a second: something has changed how objects are converted,
// and no event tells of it.
func (o *Observer) Reread() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.idle = false
	select {
	case o.again <- struct{}{}:
	default: // it is asked for already
	}
}

// Sync waits until everything that is in etcd now has been observed, and returns that observation. A cluster that cannot
// be followed it bears for a while; then the error says what stands in the way.
func (o *Observer) Sync(ctx context.Context) (*Observation, error) {
	return o.reached(ctx, func() bool { return true })
}

// Rest waits until everything that is in etcd now has been observed and nothing is left to be read: unless somebody
// changes the cluster, no newer observation will come.
func (o *Observer) Rest(ctx context.Context) (*Observation, error) {
	return o.reached(ctx, func() bool { return o.idle })
}

// reached waits until everything is observed and a condition holds.
func (o *Observer) reached(ctx context.Context, also func() bool) (*Observation, error) {
	if o.NoAccess() != nil {
		return o.now(ctx, also)
	}
	return o.await(ctx, also)
}

func (o *Observer) await(ctx context.Context, also func() bool) (*Observation, error) {
	var bear patience
	revision, err := o.storage.Revision(ctx)
	for {
		if err != nil && ctx.Err() == nil {
			revision, err = o.storage.Revision(ctx)
		}
		o.mu.Lock()
		done := err == nil && o.seen >= revision && also()
		latest, changed, trouble, blind := o.latest, o.changed, o.trouble, o.blind
		o.mu.Unlock()
		if blind != nil { // it was found out meanwhile
			return o.now(ctx, also)
		}
		if done {
			if latest.Revision < revision { // nothing of it has changed since it was published
				still := *latest
				still.Revision = revision
				latest = &still
			}
			return latest, nil
		}
		if trouble == nil && err == nil {
			trouble = o.storage.Progress(ctx)
		}
		if err := bear.with(cmp.Or(err, trouble)); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond): // a request for progress can be lost between two watches
		case <-ctx.Done():
			if trouble != nil {
				return nil, fmt.Errorf("follow the cluster: %w", trouble)
			}
			return nil, context.Cause(ctx)
		case <-o.ended:
			return nil, errEnded
		}
	}
}

// patience bears with trouble that passes.
type patience struct{ since time.Time }

// with is an error once there has been trouble for longer than is bearable.
func (p *patience) with(trouble error) error {
	switch {
	case trouble == nil:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = time.Now()
	case time.Since(p.since) > bearable:
		return fmt.Errorf("follow the cluster, which has not been possible for %s: %w", bearable, trouble)
	}
	return nil
}

// asksToWait is for how long the server has asked not to be asked again.
func asksToWait(err error) time.Duration {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked && !apierrors.IsTooManyRequests(err) {
		return 0
	}
	return min(time.Duration(max(seconds, 1))*time.Second, longestPause)
}

// load fills the store from nothing.
func (o *Observer) load(ctx context.Context) error {
	held, used := map[string]*Object{}, map[string]int64{}
	counts := storage.Counts{ByVersion: map[string]int{}}
	byVersion := map[string]bool{}
	revision, err := o.storage.Range(ctx, o.resource, func(v *storage.Value) error {
		if probe(v.Name) {
			return nil
		}
		counts.Total++
		counts.ByVersion[v.Version()]++
		if len(held) < MaxObjects-adopt-len(o.pinned) || !byVersion[v.Version()] || slices.Contains(o.pinned, v.Name) {
			held[v.Key], used[v.Key] = &Object{Namespace: v.Namespace, Name: v.Name, Stored: stored(v)}, v.ModRevision
			byVersion[v.Version()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	counts.Revision = revision
	o.held, o.used, o.counts = held, used, counts
	if err := o.readCRD(ctx); err != nil {
		return err
	}
	_, err = o.readViews(ctx, o.heldKeys())
	return err
}

// run follows the cluster. Whatever goes wrong, it says so, loads again and goes on; without access to etcd it goes on
// without.
func (o *Observer) run(ctx context.Context) {
	defer close(o.ended)
	var err error
	for wait := 50 * time.Millisecond; o.NoAccess() == nil; wait = min(2*wait, time.Second) {
		if err == nil {
			err = o.follow(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if o.lost(err) {
			break
		}
		o.fail(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(wait, asksToWait(err))):
		}
		if err = o.beat(ctx); err == nil { // the API server first: etcd may be reached through it
			err = o.load(ctx)
		}
		if err != nil {
			if ctx.Err() == nil && !o.lost(err) {
				o.fail(err)
			}
			continue
		}
		wait = 50 * time.Millisecond
		o.publish(true)
	}
	o.poll(ctx)
}

// failure is what stands in the way at the moment; nil where nothing does.
func (o *Observer) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.trouble
}

func (o *Observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trouble = err
	o.signal()
}

// follow takes batches from one watch until it ends, and returns why.
func (o *Observer) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := o.storage.Watch(ctx, o.resource, o.counts.Revision)
	pulse := time.NewTicker(pulseEvery)
	defer pulse.Stop()
	beats, beating := make(chan error, 1), false
	var again <-chan time.Time
	var changedAt time.Time  // the CRD
	var rest []time.Duration // the readings to come, by the time since then
	for {
		work := work{dirty: map[string]bool{}}
		select {
		case b := <-batches:
			if err := o.take(b, &work, batches); err != nil {
				return err
			}
		case s := <-o.names:
			o.hold(ctx, s, &work)
		case <-again:
			work.all = true
		case <-o.again:
			work.all, rest = true, rereads
		case <-pulse.C: // a watch of a server that is gone says nothing
			if !beating { // an answer that is slow must not hold up what the watch delivers
				beating = true
				go func() { beats <- o.beat(ctx) }() // ends with follow's context
			}
			continue
		case err := <-beats:
			if beating = false; err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		began := time.Now()
		if work.crd {
			changedAt, rest, again = began, rereads, nil
		}
		changed, err := o.read(ctx, work)
		if err != nil {
			return err
		}
		if work.all || work.crd {
			for again = nil; len(rest) > 0 && began.Sub(changedAt) >= rest[0]; rest = rest[1:] { // what was read late need not be read again
			}
			if len(rest) > 0 {
				again = time.After(time.Until(changedAt.Add(rest[0])))
			}
		}
		if o.stale && again == nil {
			again = time.After(bulkWindow)
		}
		o.settle(changed || work.counted, again == nil && len(o.again) == 0)
	}
}

// beat asks the API server and etcd for a sign of life.
func (o *Observer) beat(ctx context.Context) error {
	r, err := o.client.Get(ctx, DefinitionPath(o.resource), nil)
	if err == nil && r.Elsewhere() {
		err = r.Err()
	}
	if err == nil {
		_, err = o.storage.Revision(ctx)
	}
	return err
}

// work is what has to be read again.
type work struct {
	crd, all, counted bool
	dirty             map[string]bool
}

// take books a batch and all that have come meanwhile.
func (o *Observer) take(b storage.Batch, w *work, more <-chan storage.Batch) error {
	for {
		if b.Err != nil {
			return b.Err
		}
		few := o.few(len(b.Changes))
		for _, c := range b.Changes {
			if c.CRD {
				w.crd = true
			} else if err := o.book(c, few, w); err != nil {
				return err
			}
		}
		o.counts.Revision = max(o.counts.Revision, b.Revision)
		select {
		case next, open := <-more:
			if !open {
				return nil
			}
			b = next
		default:
			return nil
		}
	}
}

// few says whether there have been few changes of late, these included.
func (o *Observer) few(more int) bool {
	if now := time.Now(); now.Sub(o.window) > bulkWindow {
		o.window, o.changes = now, 0
	}
	o.changes += more
	return o.changes <= adopt
}

// book keeps the counts, and the values of the objects that are held.
func (o *Observer) book(c storage.Change, few bool, w *work) error {
	known := c.Value
	if known == nil {
		known = c.Was
	}
	if known == nil {
		return fmt.Errorf("the deletion of %s came without its last value", c.Key)
	}
	if probe(known.Name) {
		return nil
	}
	w.counted = true
	if c.Was != nil {
		o.count(c.Was.Version(), -1)
	}
	if c.Deleted {
		delete(o.held, c.Key)
		delete(o.used, c.Key)
		return nil
	}
	o.count(c.Value.Version(), 1)
	wanted := few || len(o.held) < MaxObjects || o.counts.ByVersion[c.Value.Version()] == 1 || slices.Contains(o.pinned, c.Value.Name)
	if o.held[c.Key] == nil && !wanted {
		return nil
	}
	old := o.held[c.Key]
	next := &Object{Namespace: c.Value.Namespace, Name: c.Value.Name}
	if old != nil {
		*next = *old
	}
	next.Stored = stored(c.Value)
	o.held[c.Key], o.used[c.Key] = next, c.Value.ModRevision
	if few || old == nil || slices.Contains(o.pinned, c.Value.Name) || c.Key == o.selected() {
		w.dirty[c.Key] = true
	} else {
		o.stale = true
	}
	o.evict()
	return nil
}

func (o *Observer) count(version string, by int) {
	o.counts.Total += by
	if o.counts.ByVersion[version] += by; o.counts.ByVersion[version] == 0 {
		delete(o.counts.ByVersion, version)
	}
}

// evict keeps the number of held objects: the one that was left alone longest goes, but never the selected one, nor one
// that is pinned.
func (o *Observer) evict() {
	selected := o.selected()
	for len(o.held) > MaxObjects {
		oldest := ""
		for key, x := range o.held {
			if key != selected && !slices.Contains(o.pinned, x.Name) && (oldest == "" || o.used[key] < o.used[oldest]) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		delete(o.held, oldest)
		delete(o.used, oldest)
	}
}

func (o *Observer) selected() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.chosen
}

func (o *Observer) hold(ctx context.Context, s selection, w *work) {
	v, err := o.storage.Get(ctx, o.resource, s.namespace, s.name)
	if err != nil {
		return // it is gone: there is nothing to hold
	}
	o.mu.Lock()
	o.chosen = v.Key
	o.mu.Unlock()
	o.used[v.Key] = o.counts.Revision
	if o.held[v.Key] == nil {
		o.held[v.Key] = &Object{Namespace: v.Namespace, Name: v.Name, Stored: stored(v)}
		w.dirty[v.Key] = true
		o.evict()
	}
}

// read reads again what has to be, and says whether anything was different.
func (o *Observer) read(ctx context.Context, w work) (bool, error) {
	changed := false
	if w.crd {
		before := o.crd
		if err := o.readCRD(ctx); err != nil {
			return false, err
		}
		changed = !reflect.DeepEqual(before, o.crd)
	}
	keys := o.heldKeys()
	if w.crd || w.all {
		o.stale = false
	} else {
		keys = slices.DeleteFunc(keys, func(k string) bool { return !w.dirty[k] })
	}
	different, err := o.readViews(ctx, keys)
	return changed || different || len(w.dirty) > 0, err
}

func (o *Observer) heldKeys() []string {
	keys := make([]string, 0, len(o.held))
	for k := range o.held {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (o *Observer) readCRD(ctx context.Context) error {
	r, err := o.client.Get(ctx, DefinitionPath(o.resource), nil)
	if err != nil {
		return err
	}
	if r.Status == http.StatusNotFound {
		o.crd = nil
		return nil
	}
	if err := r.Err(); err != nil {
		return err
	}
	o.crd, err = ParseCRD(r.Body)
	return err
}

// readers is how many objects are read at once. It is for slow servers: all but one wait most of their time.
const readers = 12

// readViews reads the views of objects at every version in spec.versions.
func (o *Observer) readViews(ctx context.Context, keys []string) (bool, error) {
	release, err := o.Hold(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	next := make([]*Object, len(keys))
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	slots := make(chan struct{}, readers)
	for i, key := range keys {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			next[i], errs[i] = o.readObject(ctx, o.held[key])
		}()
	}
	wg.Wait()
	changed := false
	for i, key := range keys {
		if errs[i] != nil {
			return false, errs[i]
		}
		if !reflect.DeepEqual(o.held[key], next[i]) {
			changed = true
			o.held[key] = next[i]
		}
	}
	return changed, nil
}

func (o *Observer) readObject(ctx context.Context, old *Object) (*Object, error) {
	x := &Object{Namespace: old.Namespace, Name: old.Name, Stored: old.Stored, Views: map[string]*View{}, Managers: []Manager{}}
	if x.Stored != nil {
		x.identify(x.Stored.Value, true)
	} else {
		defer x.fromViews()
	}
	if o.crd == nil {
		return x, nil
	}
	for _, v := range o.crd.Versions {
		r, err := o.client.Get(ctx, ObjectPath(o.resource, v.Name, x.Namespace, x.Name), nil)
		if err == nil && r.Elsewhere() {
			err = r.Err()
		}
		if err != nil {
			return nil, err
		}
		view := &View{Status: r.Status, Message: r.Message}
		if !r.Refused() {
			view.Object = json.RawMessage(r.Body)
			x.identify(r.Body, false)
		}
		x.Views[v.Name] = view
	}
	return x, nil
}

// identify takes the metadata that observations speak of. The managers are those in the bytes, as far as there are.
func (x *Object) identify(raw []byte, managers bool) {
	var head struct {
		Metadata struct {
			UID             string                      `json:"uid"`
			ResourceVersion string                      `json:"resourceVersion"`
			ManagedFields   []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return
	}
	x.UID = head.Metadata.UID
	if rv := head.Metadata.ResourceVersion; rv != "" {
		x.ResourceVersion = rv
	}
	if !managers {
		return
	}
	for _, m := range head.Metadata.ManagedFields {
		entry := Manager{Manager: m.Manager, Operation: string(m.Operation), Subresource: m.Subresource, APIVersion: m.APIVersion}
		if m.Time != nil {
			entry.Time = m.Time.UTC().Format(time.RFC3339)
		}
		if m.FieldsV1 != nil {
			entry.Fields, _ = m.FieldsV1.MarshalJSON()
		}
		x.Managers = append(x.Managers, entry)
	}
}

func stored(v *storage.Value) *Value {
	return &Value{Key: v.Key, APIVersion: v.APIVersion, ModRevision: v.ModRevision, Size: len(v.Data), Value: v.Data}
}

func probe(name string) bool { return strings.HasPrefix(name, ProbePrefix) }

// settle publishes what is new, and tells those who wait how far the observer is.
func (o *Observer) settle(changed, idle bool) {
	if changed {
		o.publish(idle)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reach(idle)
	o.signal()
}

// reach notes how far the observer is; the lock is held. While views are out of date it is no further.
func (o *Observer) reach(idle bool) {
	o.idle, o.trouble = idle, nil
	if !o.stale {
		o.seen = o.counts.Revision
	}
}

func (o *Observer) publish(idle bool) {
	n := &Observation{At: time.Now(), Revision: o.counts.Revision, CRD: o.crd, Objects: make([]*Object, 0, len(o.held)),
		Stored: Stored{Access: o.NoAccess() == nil, Reason: storage.Reason(o.NoAccess()), Total: o.counts.Total, ByVersion: map[string]int{}}, ObjectsOmitted: o.counts.Total - len(o.held)}
	for v, c := range o.counts.ByVersion {
		n.Stored.ByVersion[v] = c
	}
	for _, k := range o.heldKeys() {
		n.Objects = append(n.Objects, o.held[k])
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.latest = n
	o.reach(idle)
	o.signal()
}

// signal wakes those who wait; the lock is held.
func (o *Observer) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// ParseCRD takes what observations speak of from a CRD as the API gives it.
func ParseCRD(raw []byte) (*CRD, error) {
	var d apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read a CRD: %w", err)
	}
	c := &CRD{Name: d.Name, UID: string(d.UID), Generation: d.Generation, Strategy: string(apiextensionsv1.NoneConverter),
		StoredVersions: append([]string{}, d.Status.StoredVersions...), Conditions: map[string]string{},
		Terminating: d.DeletionTimestamp != nil, Labels: d.Labels, ResourceVersion: d.ResourceVersion}
	if d.Spec.Conversion != nil {
		c.Strategy = string(d.Spec.Conversion.Strategy)
	}
	for _, v := range d.Spec.Versions {
		n := Version{Name: v.Name, Served: v.Served, Storage: v.Storage, Deprecated: v.Deprecated}
		if v.DeprecationWarning != nil {
			n.DeprecationWarning = *v.DeprecationWarning
		}
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			for f := range v.Schema.OpenAPIV3Schema.Properties["spec"].Properties {
				n.Fields = append(n.Fields, f)
			}
			sort.Strings(n.Fields)
		}
		c.Versions = append(c.Versions, n)
	}
	for _, x := range d.Status.Conditions {
		c.Conditions[string(x.Type)] = string(x.Status)
		if x.Status != apiextensionsv1.ConditionTrue || x.Type == apiextensionsv1.Terminating {
			c.Conditions[string(x.Type)] += " " + x.Reason
		}
	}
	return c, nil
}
