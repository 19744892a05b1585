package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
)

// read is how reading went at one served version.
type read struct {
	version string
	listed  int   // objects that LIST returned
	list    error // of LIST; nil where it went well
	gets    []get // one object of each stored version
}

// get is a GET of one object.
type get struct {
	object string
	stored string // its stored version, where it is known
	err    error
}

// read lists all objects at every served version, and gets one of each stored version. Where the bytes could not be
// read, the survey is made of the lists.
func (l *look) read(ctx context.Context) error {
	for _, v := range l.crd.Spec.Versions {
		if !v.Served {
			continue
		}
		r := read{version: v.Name}
		fill := !l.survey.made
		r.list = rewrite.EachMetadata(ctx, l.client, l.resource, v.Name, "", func(m *rewrite.Metadata) error {
			r.listed++
			if fill {
				l.survey.addListed(l.resource, l.crd.Spec.Names.Kind, m)
			}
			return nil
		})
		if fill {
			if l.survey.made = r.list == nil; !l.survey.made {
				why := l.survey.noAccess
				l.survey = newSurvey()
				l.survey.noAccess = why
			}
		}
		for _, s := range l.oneOfEach() {
			g := get{object: fullName(s.Namespace, s.Name), stored: s.Stored}
			resp, err := l.client.Get(ctx, evidence.ObjectPath(l.resource, v.Name, s.Namespace, s.Name), nil)
			if g.err = err; err == nil && !gone(resp) {
				g.err = resp.Err()
			}
			r.gets = append(r.gets, g)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.reads = append(l.reads, r)
	}
	return nil
}

// oneOfEach is the first object of each stored version.
func (l *look) oneOfEach() []rewrite.Subject {
	var out []rewrite.Subject
	for _, v := range slices.Sorted(maps.Keys(l.survey.samples)) {
		out = append(out, l.survey.samples[v].objects[0])
	}
	return out
}

// gone says that an object was deleted meanwhile.
func gone(resp *evidence.Response) bool {
	return resp.Status == http.StatusNotFound && resp.Reason != ""
}

// refusal is a request about one object that the server refused.
type refusal struct {
	object  string
	status  int
	reason  string
	message string
}

func (r refusal) String() string {
	return fmt.Sprintf("%s: %s: %s", r.object, strings.TrimSpace(fmt.Sprintf("%d %s", r.status, r.reason)), r.message)
}

// asking is how many objects are asked about at once.
const asking = 8

// asked is what the dry runs on one object have said.
type asked struct {
	loss  *rewrite.Loss // nil where a rewrite would lose nothing
	there bool          // it was not deleted meanwhile
	unfit *refusal      // nil where a copy could be created
}

// try asks by dry runs, for the sampled objects, what a rewrite would lose and whether a copy could be created.
func (l *look) try(ctx context.Context) error {
	if !l.serves(l.storage) {
		l.untried = "the storage version " + l.storage + " is not served, so that nothing can be asked at it"
		return nil
	}
	var subjects []rewrite.Subject
	lost := l.lost()
	for _, v := range slices.Sorted(maps.Keys(l.survey.samples)) {
		if slices.Contains(lost, v) {
			l.skipped = true
			continue
		}
		subjects = append(subjects, l.survey.samples[v].objects...)
	}
	answers := make([]asked, len(subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(asking)
	for i, s := range subjects {
		g.Go(func() (err error) {
			if answers[i].loss, err = rewrite.RoundTrip(ctx, l.client, l.crd, s); err != nil {
				return err
			}
			answers[i].there, answers[i].unfit, err = l.tryCopy(ctx, s)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, a := range answers {
		if a.loss != nil {
			l.losses = append(l.losses, *a.loss)
		}
		if a.unfit != nil {
			l.unfit = append(l.unfit, *a.unfit)
		}
		if a.there {
			l.tried++
		}
	}
	return nil
}

// tryCopy asks whether the object, as it is read at the target, could be created there: a backup of it must. It says
// whether the object is there, and why a copy is refused.
func (l *look) tryCopy(ctx context.Context, s rewrite.Subject) (bool, *refusal, error) {
	resp, err := l.client.Get(ctx, evidence.ObjectPath(l.resource, l.target, s.Namespace, s.Name), nil)
	if err != nil || gone(resp) {
		return false, nil, err
	}
	if !resp.Refused() {
		body, err := copyOf(resp.Body)
		if err != nil {
			return true, nil, fmt.Errorf("copy %s: %w", fullName(s.Namespace, s.Name), err)
		}
		resp, err = l.client.Do(ctx, evidence.Request{
			Method: http.MethodPost, Path: evidence.CollectionPath(l.resource, l.target, s.Namespace),
			Query: url.Values{"dryRun": {"All"}}, ContentType: evidence.JSON, Body: body,
		})
		if err != nil {
			return true, nil, err
		}
	}
	if resp.Refused() {
		return true, &refusal{fullName(s.Namespace, s.Name), resp.Status, resp.Reason, resp.Message}, nil
	}
	return true, nil, nil
}

// copyOf is an object under another name, without what the server gave it.
func copyOf(object []byte) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(object, &m); err != nil {
		return nil, err
	}
	meta := map[string]any{"name": rewrite.ProbePrefix + rand.String(8)}
	if was, ok := m["metadata"].(map[string]any); ok {
		for _, keep := range []string{"namespace", "labels", "annotations"} {
			if was[keep] != nil {
				meta[keep] = was[keep]
			}
		}
	}
	m["metadata"] = meta
	return json.Marshal(m)
}

func (l *look) serves(version string) bool {
	for _, v := range l.crd.Spec.Versions {
		if v.Name == version {
			return v.Served
		}
	}
	return false
}
