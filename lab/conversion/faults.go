package conversion

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Fault is something that is wrong with the webhook. The zero Fault is none: all is well.
type Fault struct {
	ID   string `json:"id"`
	Does string `json:"does"` // in words
	// ChangesCRD says that the fault is in the CRD's reference to the webhook. It shows once the CRD has the ClientConfig
	// of then; Repoint does that. It is healed in the same way.
	ChangesCRD bool          `json:"changesCRD,omitempty"`
	Delay      time.Duration `json:"delay,omitempty"`  // of slow: how long an answer takes; any time above zero
	Object     string        `json:"object,omitempty"` // of failed-one: the name of the object; empty: the first of a review
}

// behaviour is how a fault is brought about: by one of these.
type behaviour struct {
	Fault
	cutsAll     bool                                                 // every connection is cut as soon as it is made
	certificate func(*authority, []string) (*tls.Certificate, error) // what is shown in place of the good one
	reference   func(*apiextensionsv1.ServiceReference)              // what the CRD names
	waits       func(Fault) (time.Duration, bool)                    // before the answer; false: for ever
	replaces    *reply                                               // what is sent in place of the answer
	spoils      func(Fault, *review, *response)                      // what becomes of the answer
}

// reply is an answer that is no ConversionReview.
type reply struct {
	status      int
	contentType string
	body        string
}

// behaviours are all faults, by where they are: the connection, the CRD, HTTP, the answer, the objects in it.
var behaviours = []behaviour{
	{Fault: Fault{ID: "down", Does: "Nobody answers: every connection is cut as soon as it is made."}, cutsAll: true},
	{Fault: Fault{ID: "wrong-ca", Does: "The certificate is signed by a CA that the CRD's caBundle does not hold."},
		certificate: func(_ *authority, names []string) (*tls.Certificate, error) {
			other, err := newAuthority(nil)
			if err != nil {
				return nil, err
			}
			return other.issue(names)
		}},
	{Fault: Fault{ID: "wrong-name", Does: "The certificate is for another name than that of the Service."},
		certificate: func(ca *authority, names []string) (*tls.Certificate, error) {
			var others []string
			for _, n := range names {
				others = append(others, "not-"+n)
			}
			return ca.issue(others)
		}},
	{Fault: Fault{ID: "expired-certificate", Does: "The certificate expired yesterday."},
		certificate: func(ca *authority, names []string) (*tls.Certificate, error) {
			return ca.issue(names, func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().AddDate(0, 0, -2), time.Now().AddDate(0, 0, -1)
			})
		}},
	{Fault: Fault{ID: "wrong-service", ChangesCRD: true, Does: "The CRD names a Service that is not there."},
		reference: func(s *apiextensionsv1.ServiceReference) { s.Name = "not-" + s.Name }},
	{Fault: Fault{ID: "wrong-port", ChangesCRD: true, Does: "The CRD names a port of the Service that nobody serves."},
		reference: func(s *apiextensionsv1.ServiceReference) { *s.Port++ }},
	{Fault: Fault{ID: "http-404", Does: "Every request is answered with 404, as by a server that has another path."},
		replaces: &reply{http.StatusNotFound, "text/plain; charset=utf-8", "404 page not found\n"}},
	{Fault: Fault{ID: "http-500", Does: "Every request is answered with 500."},
		replaces: &reply{http.StatusInternalServerError, "text/plain; charset=utf-8", "the webhook has a fault of its own\n"}},
	{Fault: Fault{ID: "not-json", Does: "The answer is a web page, not JSON."},
		replaces: &reply{http.StatusOK, "text/html; charset=utf-8", "<!DOCTYPE html><title>It works!</title>\n"}},
	{Fault: Fault{ID: "slow", Delay: 3 * time.Second, Does: "Every answer takes a while, and is right."},
		waits: func(f Fault) (time.Duration, bool) { return f.Delay, true }},
	{Fault: Fault{ID: "hang", Does: "No answer ever comes; the connection stays open."},
		waits: func(Fault) (time.Duration, bool) { return 0, false }},
	{Fault: Fault{ID: "wrong-uid", Does: "The answer's uid is not that of the request."},
		spoils: func(_ Fault, _ *review, out *response) { out.uid = "not-" + out.uid }},
	{Fault: Fault{ID: "fewer-objects", Does: "The answer lacks the last object."},
		spoils: func(_ Fault, _ *review, out *response) { out.objects = out.objects[:max(0, len(out.objects)-1)] }},
	{Fault: Fault{ID: "failed", Does: "The webhook says that it cannot convert: Failed, with a message."},
		spoils: func(_ Fault, _ *review, out *response) { out.fail("the webhook cannot convert today") }},
	{Fault: Fault{ID: "failed-one", Does: "The webhook cannot convert one of the objects; the others it can."},
		spoils: failOne},
	{Fault: Fault{ID: "wrong-api-version", Does: "The objects keep the apiVersion that they had."}, spoils: spoilObjects(
		func(o map[string]any, was *object) { o["apiVersion"] = was.version.String() })},
	{Fault: Fault{ID: "wrong-kind", Does: "The objects are of another kind."}, spoils: spoilObjects(
		func(o map[string]any, was *object) { o["kind"] = "Not" + was.kind })},
	{Fault: Fault{ID: "changed-name", Does: "The objects have another name."}, spoils: spoilObjects(
		func(o map[string]any, was *object) { metadata(o)["name"] = "not-" + was.name })},
	{Fault: Fault{ID: "changed-uid", Does: "The objects have another uid."}, spoils: spoilObjects(
		func(o map[string]any, _ *object) { metadata(o)["uid"] = "00000000-0000-0000-0000-000000000000" })},
	{Fault: Fault{ID: "changed-labels", Does: "The objects have a label and an annotation more."}, spoils: spoilObjects(
		func(o map[string]any, _ *object) {
			for _, field := range []string{"labels", "annotations"} {
				all, _ := metadata(o)[field].(map[string]any)
				if all == nil {
					all = map[string]any{}
				}
				all[AddedName] = "webhook"
				metadata(o)[field] = all
			}
		})},
	{Fault: Fault{ID: "changed-finalizers", Does: "The objects have another list of finalizers."}, spoils: spoilObjects(
		func(o map[string]any, _ *object) { metadata(o)["finalizers"] = []any{AddedName} })},
	{Fault: Fault{ID: "undeclared-fields", Does: "The objects have a field in their spec that no schema declares."}, spoils: spoilObjects(
		func(o map[string]any, _ *object) {
			if spec, ok := o["spec"].(map[string]any); ok {
				spec["undeclared"] = "by the webhook"
			}
		})},
	{Fault: Fault{ID: "wrong-types", Does: "Texts in the spec become numbers, numbers become texts."}, spoils: spoilObjects(
		func(o map[string]any, _ *object) {
			if spec, ok := o["spec"].(map[string]any); ok {
				o["spec"] = otherTypes(spec)
			}
		})},
}

// AddedName is the label, the annotation and the finalizer that changed-labels and changed-finalizers add.
const AddedName = "crdlab.dev/added-by"

// Faults are all faults, each with its usual parameters.
func Faults() []Fault {
	var out []Fault
	for _, b := range behaviours {
		out = append(out, b.Fault)
	}
	return out
}

// FaultByID finds a fault; "" is the zero Fault.
func FaultByID(id string) (Fault, error) {
	b, err := behaviourOf(Fault{ID: id})
	return b.Fault, err
}

// behaviourOf finds how a fault is brought about. The parameters are the caller's, where it gives any.
func behaviourOf(f Fault) (behaviour, error) {
	if f.ID == "" {
		return behaviour{}, nil
	}
	i := slices.IndexFunc(behaviours, func(b behaviour) bool { return b.ID == f.ID })
	if i < 0 {
		return behaviour{}, fmt.Errorf("there is no fault %q", f.ID)
	}
	b := behaviours[i]
	if f.Delay > 0 {
		b.Delay = f.Delay
	}
	b.Object = f.Object
	return b, nil
}

// handshake says that a fault is in how a connection begins. One that was made before does not know it.
func (b *behaviour) handshake() bool { return b.cutsAll || b.certificate != nil }

func failOne(f Fault, in *review, out *response) {
	for _, o := range in.objects {
		if f.Object == "" || o.name == f.Object {
			out.fail(fmt.Sprintf("%s: the webhook cannot convert this one", o))
			return
		}
	}
}

// spoilObjects does something to every object of an answer.
func spoilObjects(spoil func(converted map[string]any, was *object)) func(Fault, *review, *response) {
	return func(_ Fault, in *review, out *response) {
		for i, o := range out.objects {
			spoil(o, in.objects[i])
		}
	}
}

func metadata(o map[string]any) map[string]any { return o["metadata"].(map[string]any) }

// otherTypes makes numbers of texts, and texts of all else but lists and objects, which it looks into.
func otherTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = otherTypes(v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = otherTypes(v[i])
		}
		return v
	case string:
		return len(v)
	case json.Number:
		return v.String()
	case nil:
		return v
	}
	return fmt.Sprint(v)
}
