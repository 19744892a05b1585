package rewrite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// ProbePrefix begins the name of every object that is created to find something out, and deleted at once. Such objects
// are not part of what a lab shows.
const ProbePrefix = "crdlab-probe-"

const (
	blindDelay  = time.Second // after a probe was accepted, where its bytes cannot be read
	probePause  = 5 * time.Millisecond
	probeRemove = 5 * time.Second // to finish and delete a probe when the waiting has been cancelled
)

// Effect says how it was found that a switch of the storage version is in effect.
type Effect struct {
	// Seen: the bytes of a probe were read, and are at the target. Otherwise they could not be read: writes at the target
	// are accepted, and a delay was waited for that has always been long enough on one API server.
	Seen  bool
	Tries int
	Took  time.Duration
}

// Template is an object, as JSON, whose content probes copy: everything but its metadata and status.
type Template []byte

// WaitInEffect waits until writes are stored at target. An API server follows a change of the CRD a little later than it
// answers it, and what is written meanwhile is stored at the old version. It creates a probe at target, reads the version
// in its bytes, and deletes it, until that is target. A nil Template means that probes copy an existing object, and where
// there is none have nothing but a name.
//
// Where bytes cannot be read, Effect.Seen is false. Behind several API servers a probe tells of the one that answered:
// there, only a count of the bytes after the rewrite is proof.
func (r *Rewriter) WaitInEffect(ctx context.Context, target string, like Template) (Effect, error) {
	p := &probe{r: r, client: r.Client.As(evidence.ByProbe), target: target, began: time.Now()}
	err := p.prepare(ctx, like)
	for err == nil && !p.done {
		p.effect.Tries++
		err = p.try(ctx)
	}
	if err == nil && !p.effect.Seen {
		err = sleep(ctx, blindDelay)
	}
	p.effect.Took = time.Since(p.began)
	if err != nil {
		return p.effect, fmt.Errorf("wait until %s is stored at %s: %w", r.Resource, target, err)
	}
	return p.effect, nil
}

// probe finds out at which version the server stores what is written now.
type probe struct {
	r         *Rewriter
	client    *evidence.Client
	target    string
	namespace string
	object    map[string]any
	began     time.Time
	done      bool
	effect    Effect
}

// prepare makes the object that is to be created, without a name.
func (p *probe) prepare(ctx context.Context, like Template) error {
	crd, err := p.definition(ctx)
	if err != nil {
		return err
	}
	if like == nil {
		if like, err = p.existing(ctx); err != nil {
			return err
		}
	}
	var original struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	p.object = map[string]any{}
	if like != nil {
		if err := errors.Join(json.Unmarshal(like, &p.object), json.Unmarshal(like, &original)); err != nil {
			return fmt.Errorf("read the object that probes are to copy: %w", err)
		}
	}
	delete(p.object, "status")
	p.object["apiVersion"], p.object["kind"] = p.r.Resource.Group+"/"+p.target, crd.Spec.Names.Kind
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		p.namespace = cmp.Or(p.r.Namespace, original.Metadata.Namespace, "default")
	}
	return nil
}

// definition reads the CRD, and refuses to wait for what it does not say.
func (p *probe) definition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := Definition(ctx, p.client, p.r.Resource)
	if err != nil {
		return nil, err
	}
	return crd, ready(crd, p.target)
}

// existing reads one object at the target; nil where there is none.
func (p *probe) existing(ctx context.Context) (Template, error) {
	var wait patience
	path := evidence.CollectionPath(p.r.Resource, p.target, p.r.Namespace)
	for {
		resp, err := p.client.Get(ctx, path, url.Values{"limit": {"1"}})
		if err != nil {
			return nil, err
		}
		notYet := resp.Status == http.StatusNotFound // the server does not serve the target yet
		if _, asked := askedToWait(resp); (asked || notYet) && wait.allows(probePause) {
			if err := sleep(ctx, probePause); err != nil {
				return nil, err
			}
			continue
		}
		if err := resp.Err(); err != nil {
			return nil, err
		}
		var page struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(resp.Body, &page); err != nil {
			return nil, fmt.Errorf("%s %s: read the answer: %w", resp.Method, resp.Path, err)
		}
		if len(page.Items) == 0 {
			return nil, nil
		}
		return Template(page.Items[0]), nil
	}
}

// try creates one probe, looks at it, and deletes it whatever happens.
func (p *probe) try(ctx context.Context) (err error) {
	name := ProbePrefix + rand.String(8)
	p.object["metadata"] = map[string]any{"name": name, "namespace": p.namespace}
	body, err := json.Marshal(p.object)
	if err != nil {
		return fmt.Errorf("write a probe: %w", err)
	}
	lasting, done := outlive(ctx, probeRemove) // a create that is cut off may yet be stored after the delete
	defer done()
	defer func() { // also of one that was refused: a create can fail and yet be stored
		err = errors.Join(err, p.remove(lasting, name))
	}()
	resp, err := p.client.Create(lasting, evidence.CollectionPath(p.r.Resource, p.target, p.namespace), "", body)
	if err != nil {
		return err
	}
	if resp.Refused() {
		return p.refused(ctx, resp)
	}
	if p.r.Storage == nil {
		p.done = true
		return nil
	}
	stored, err := p.r.Storage.Get(ctx, p.r.Resource, p.namespace, name)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err == nil && stored.Version() == p.target {
		p.done, p.effect.Seen = true, true
		return nil
	}
	return p.pause(ctx)
}

// refused decides whether an answer to a probe may be another in a moment.
func (p *probe) refused(ctx context.Context, resp *evidence.Response) error {
	err := resp.Err()
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("the probe is not a valid object; give one to copy: %w", err)
	}
	if absent(resp) && p.namespace != "" {
		return fmt.Errorf("create the namespace %s first: %w", p.namespace, err)
	}
	_, asked := askedToWait(resp)
	if passing := asked || resp.Status == http.StatusNotFound || resp.Status >= 500; !passing || time.Since(p.began) > patienceEnds {
		return err
	}
	return p.pause(ctx)
}

// pause waits a little, and ends the waiting when the CRD no longer says what is waited for.
func (p *probe) pause(ctx context.Context) error {
	if err := sleep(ctx, probePause); err != nil {
		return err
	}
	_, err := p.definition(ctx)
	return err
}

// remove deletes a probe.
func (p *probe) remove(ctx context.Context, name string) error {
	path := evidence.ObjectPath(p.r.Resource, p.target, p.namespace, name)
	resp, err := p.client.Delete(ctx, path)
	if err == nil && resp.Status != http.StatusNotFound {
		err = resp.Err()
	}
	if err != nil {
		return fmt.Errorf("the probe %s may be left behind, delete it: %w", name, err)
	}
	return nil
}

// outlive is a context that ends some time after another has ended, or when done is called.
func outlive(ctx context.Context, by time.Duration) (lasting context.Context, done func()) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return lasting, func() {
		stop()
		cancel()
	}
}
