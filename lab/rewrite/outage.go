package rewrite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

const (
	outageEnds = 3 * time.Minute // of waiting for a server that does not answer; then the work ends
	outagePoll = 250 * time.Millisecond
)

// outage is a time in which the server does not answer. One of the writes looks whether it is back; the others wait for
// that one.
type outage struct {
	over chan struct{}
	err  error // once over: why it was given up; nil where the server is back
}

// sitOut waits until the server answers again. The error says that it does not, or not as it did, and ends the work.
func (w *work) sitOut(ctx context.Context, why error) error {
	w.mu.Lock()
	o := w.outage
	first := o == nil
	if first {
		o = &outage{over: make(chan struct{})}
		w.outage = o
		w.meter.waiting = fmt.Sprintf("waits for the server, for %s at the most: %v", outageEnds, why)
		w.report()
	}
	w.mu.Unlock()
	if !first {
		select {
		case <-o.over:
			return o.err
		case <-ctx.Done():
			return nil
		}
	}
	o.err = w.untilBack(ctx, why)
	w.mu.Lock()
	w.outage, w.meter.waiting = nil, ""
	w.report()
	w.mu.Unlock()
	close(o.over)
	return o.err
}

// untilBack asks the server, as a probe, until it answers as before.
func (w *work) untilBack(ctx context.Context, why error) error {
	asking, cancel := context.WithTimeout(ctx, outageEnds)
	defer cancel()
	for {
		back, err := w.back(asking)
		if back || err != nil {
			return err
		}
		if sleep(asking, outagePoll) == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil // whoever ended it knows why
		}
		return fmt.Errorf("the server did not come back within %s: %w", outageEnds, why)
	}
}

// back says whether the server lists the objects again. One that has just begun may refuse what it will accept in a
// moment. The error says that it is back, and no longer what it was.
func (w *work) back(ctx context.Context) (bool, error) {
	probe := w.r.Client.As(evidence.ByProbe)
	list := evidence.CollectionPath(w.r.Resource, w.result.Target, w.r.Namespace)
	resp, err := probe.Get(ctx, list, url.Values{"limit": {"1"}})
	switch {
	case err != nil:
		return false, nil
	case resp.Status == http.StatusUnauthorized:
		return false, resp.Err()
	case resp.Refused():
		return false, nil
	}
	crd, err := Definition(ctx, probe, w.r.Resource)
	if errors.Is(err, evidence.ErrNoAnswer) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if was, now := w.result.Guard, guardOf(crd); was.UID != now.UID {
		return false, &ChangedError{CRD: crd.Name, Was: was, Now: now}
	}
	return true, ready(crd, w.result.Target)
}

// persist does what can be done again from its beginning, until neither etcd nor the server leaves it unanswered.
func (w *work) persist(ctx context.Context, do func() error) error {
	began := time.Now()
	for {
		err := do()
		if err == nil || ctx.Err() != nil || !errors.Is(err, evidence.ErrNoAnswer) && !errors.Is(err, storage.ErrUnanswered) {
			w.waiting("")
			return err
		}
		if time.Since(began) > outageEnds {
			return fmt.Errorf("no answer for %s: %w", outageEnds, err)
		}
		w.waiting(fmt.Sprintf("waits for an answer, for %s at the most: %v", outageEnds, err))
		if err := sleep(ctx, outagePoll); err != nil {
			return err
		}
	}
}

// fromGateway takes for no answer what stands in the place of one: somebody between here and the server says that it is not there.
func fromGateway(resp *evidence.Response) error {
	if resp.Status != http.StatusBadGateway && resp.Status != http.StatusServiceUnavailable && resp.Status != http.StatusGatewayTimeout {
		return nil
	}
	if _, asked := askedToWait(resp); asked {
		return nil
	}
	return resp.Err()
}
