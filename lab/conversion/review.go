package conversion

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdlab/crdlab/lab/evidence"
)

const reviewKind = "ConversionReview"

// maxDepth is how deep objects and lists in a body may stand in one another.
const maxDepth = 1000

// refusal is what is said to a request that is none that an API server would send, in one line.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func malformed(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// review is a ConversionReview that has been understood.
type review struct {
	uid     string
	desired schema.GroupVersion
	objects []*object
}

// object is one object to be converted. It is edited as JSON: the webhook knows no types.
type object struct {
	content         map[string]any
	kind            string
	version         schema.GroupVersion
	namespace, name string
}

// parseReview reads a ConversionReview about objects of the groups given.
func parseReview(body []byte, groups []string) (*review, error) {
	var in struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    *struct {
			UID               string            `json:"uid"`
			DesiredAPIVersion string            `json:"desiredAPIVersion"`
			Objects           []json.RawMessage `json:"objects"`
		} `json:"request"`
	}
	if err := checkedDecode(body, &in); err != nil {
		return nil, malformed("the body is no ConversionReview: %v", err)
	}
	if in.Kind != reviewKind || in.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, malformed("the body is a %.100q of %.100q, not a %s of %s", in.Kind, in.APIVersion, reviewKind, apiextensionsv1.SchemeGroupVersion)
	}
	switch {
	case in.Request == nil:
		return nil, malformed("the review has no request")
	case in.Request.UID == "":
		return nil, malformed("the request has no uid")
	case len(in.Request.Objects) == 0:
		return nil, malformed("the request has no objects")
	}
	out := &review{uid: in.Request.UID}
	var err error
	if out.desired, err = groupVersion(in.Request.DesiredAPIVersion, groups); err != nil {
		return nil, malformed("desiredAPIVersion: %v", err)
	}
	for i, raw := range in.Request.Objects {
		o, err := parseObject(raw, groups)
		if err != nil {
			return nil, malformed("objects[%d]: %v", i, err)
		}
		out.objects = append(out.objects, o)
	}
	return out, nil
}

func parseObject(raw json.RawMessage, groups []string) (*object, error) {
	o := &object{}
	if err := decode(raw, &o.content); err != nil || o.content == nil {
		return nil, fmt.Errorf("it is no object")
	}
	apiVersion, _ := o.content["apiVersion"].(string)
	var err error
	if o.version, err = groupVersion(apiVersion, groups); err != nil {
		return nil, fmt.Errorf("apiVersion: %w", err)
	}
	metadata, ok := o.content["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it has no metadata")
	}
	if o.kind, _ = o.content["kind"].(string); o.kind == "" {
		return nil, fmt.Errorf("it has no kind")
	}
	o.namespace, _ = metadata["namespace"].(string)
	o.name, _ = metadata["name"].(string)
	return o, nil
}

func groupVersion(apiVersion string, groups []string) (schema.GroupVersion, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" || !slices.Contains(groups, gv.Group) {
		return gv, fmt.Errorf("%.100q is no version of %s", apiVersion, strings.Join(groups, " or "))
	}
	return gv, nil
}

// checkedDecode decodes JSON that may be as deep as somebody likes. It looks at the depth first: a decoder that follows it
// costs far more than this.
func checkedDecode(raw []byte, into any) error {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it is nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if !json.Valid(raw) { // a decoder would not look at what follows
		return json.Unmarshal(raw, into)
	}
	return decode(raw, into)
}

// response is the answer to a review, before it is written.
type response struct {
	uid     string
	objects []map[string]any
	failed  bool
	message string // why
}

// answer converts every object of a review, or says why one of them cannot be.
func (all mappings) answer(in *review) *response {
	out := &response{uid: in.uid, objects: []map[string]any{}}
	for _, o := range in.objects {
		if err := o.convert(all, in.desired); err != nil {
			return out.fail(fmt.Sprintf("%s: %v", o, err))
		}
		out.objects = append(out.objects, o.content)
	}
	return out
}

func (r *response) fail(message string) *response {
	r.objects, r.failed, r.message = []map[string]any{}, true, message
	return r
}

func (o *object) convert(all mappings, to schema.GroupVersion) error {
	if o.version.Group != to.Group {
		return fmt.Errorf("%s cannot become %s", o.version, to)
	}
	if err := all.convert(o.content, pair{o.version.Version, to.Version}); err != nil {
		return err
	}
	o.content["apiVersion"] = to.String()
	return nil
}

// String names the object in messages.
func (o *object) String() string {
	if o.namespace == "" {
		return fmt.Sprintf("%s %s", o.kind, o.name)
	}
	return fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name)
}

// encode writes the answer as a ConversionReview.
func (r *response) encode() ([]byte, error) {
	type result struct {
		Status  string `json:"status"`
		Message string `json:"message,omitempty"`
	}
	type body struct {
		UID              string           `json:"uid"`
		Result           result           `json:"result"`
		ConvertedObjects []map[string]any `json:"convertedObjects"`
	}
	status := metav1.StatusSuccess
	if r.failed {
		status = metav1.StatusFailure
	}
	return encode(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Response   body   `json:"response"`
	}{apiextensionsv1.SchemeGroupVersion.String(), reviewKind, body{r.uid, result{status, r.message}, r.objects}})
}

// entry is what the log keeps of a review.
func (r *review) entry() evidence.Conversion {
	c := evidence.Conversion{UID: r.uid, DesiredAPIVersion: r.desired.String(), Objects: len(r.objects)}
	var from []string
	for _, o := range r.objects {
		if v := o.version.String(); !slices.Contains(from, v) {
			from = append(from, v)
		}
		if len(c.Names) < evidence.MaxConversionNames {
			c.Names = append(c.Names, strings.TrimPrefix(o.namespace+"/"+o.name, "/"))
		}
	}
	c.From = strings.Join(from, ", ")
	return c
}
