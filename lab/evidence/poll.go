package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"time"

	"github.com/crdlab/crdlab/lab/storage"
)

// pollEvery is how often the API is asked where etcd cannot be read.
const pollEvery = 500 * time.Millisecond

// handlerPatience is how long after a change of the CRD its effect on requests may be in coming.
const handlerPatience = time.Second

// poll follows the cluster through the API alone. It sees no stored value, and of many objects only the first and those
// that are always held.
func (o *Observer) poll(ctx context.Context) {
	for {
		select {
		case s := <-o.names:
			o.selectName(s)
		case done := <-o.asked:
			o.ask(ctx)
			close(done)
			continue
		case <-time.After(max(pollEvery, asksToWait(o.failure()))):
		case <-ctx.Done():
			return
		}
		o.ask(ctx)
	}
}

// ask reads everything again, and publishes it where it is different.
func (o *Observer) ask(ctx context.Context) {
	crd, held, counts := o.crd, o.held, o.counts
	if err := o.loadFromAPI(ctx); err != nil {
		o.crd, o.held, o.counts = crd, held, counts // the half of it is no picture of the cluster
		if ctx.Err() == nil {
			o.fail(err)
		}
		return
	}
	if !reflect.DeepEqual(crd, o.crd) {
		o.crdChanged = time.Now()
	}
	o.settle(!reflect.DeepEqual(crd, o.crd) || !reflect.DeepEqual(held, o.held), time.Since(o.crdChanged) > handlerPatience)
}

func (o *Observer) selectName(s selection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.chosen = s.namespace + "/" + s.name
}

// now reads everything again on behalf of one who waits, until a condition holds.
func (o *Observer) now(ctx context.Context, reached func() bool) (*Observation, error) {
	var bear patience
	for {
		done := make(chan struct{})
		select {
		case o.asked <- done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-o.ended:
			return nil, errEnded
		}
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-o.ended:
			return nil, errEnded
		}
		o.mu.Lock()
		held, latest, trouble := reached(), o.latest, o.trouble
		o.mu.Unlock()
		if held && trouble == nil {
			return latest, nil
		}
		pause := 10 * time.Millisecond
		if trouble != nil {
			pause = max(pollEvery, asksToWait(trouble))
		}
		if err := bear.with(trouble); err != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if trouble != nil {
				return nil, fmt.Errorf("follow the cluster: %w", trouble)
			}
			return nil, context.Cause(ctx)
		}
	}
}

// loadFromAPI fills the store with the first objects of a list, the pinned ones and the selected one.
func (o *Observer) loadFromAPI(ctx context.Context) error {
	if err := o.readCRD(ctx); err != nil {
		return err
	}
	o.held, o.counts = map[string]*Object{}, storage.Counts{ByVersion: map[string]int{}}
	version := o.servedVersion()
	if version == "" {
		return nil
	}
	if err := o.list(ctx, version); err != nil {
		return err
	}
	_, err := o.readViews(ctx, o.heldKeys())
	return err
}

// servedVersion is the version at which lists are asked for: the storage version where it is served.
func (o *Observer) servedVersion() string {
	served := ""
	if o.crd == nil {
		return served
	}
	for _, v := range o.crd.Versions {
		if v.Served && (served == "" || v.Storage) {
			served = v.Name
		}
	}
	return served
}

func (o *Observer) list(ctx context.Context, version string) error {
	release, err := o.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	r, err := o.client.Get(ctx, CollectionPath(o.resource, version, ""), url.Values{"limit": {strconv.Itoa(MaxObjects)}})
	if err != nil {
		return err
	}
	if r.Elsewhere() {
		return r.Err()
	}
	if r.Refused() {
		return nil // what cannot be listed is seen in the views, as far as objects are known by name
	}
	var list struct {
		Metadata struct {
			ResourceVersion    string `json:"resourceVersion"`
			RemainingItemCount int    `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []struct {
			Metadata struct{ Namespace, Name string } `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(r.Body, &list); err != nil {
		return fmt.Errorf("read the list of %s: %w", o.resource, err)
	}
	o.counts.Total = list.Metadata.RemainingItemCount
	o.counts.Revision, _ = strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
	for _, item := range list.Items {
		if probe(item.Metadata.Name) {
			continue
		}
		o.counts.Total++
		o.held[item.Metadata.Namespace+"/"+item.Metadata.Name] = &Object{Namespace: item.Metadata.Namespace, Name: item.Metadata.Name}
	}
	return nil
}

// fromViews takes managers and identity from the views, where there are no bytes to take them from.
func (x *Object) fromViews() {
	for _, v := range x.Views {
		if v.Status == 200 {
			x.identify(v.Object, len(x.Managers) == 0)
			return
		}
	}
}

var errEnded = fmt.Errorf("the observer has ended")
