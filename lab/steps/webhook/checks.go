package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

// sent finds an exchange about an object of the track, or all of them where the name is empty, at a version.
func sent(e lesson.Evidence, method, version, object string) *evidence.Exchange {
	path := evidence.CollectionPath(e.Resource, version, e.Namespace)
	if object != "" && method != http.MethodPost {
		path = kit.ObjectPath(e, version, object)
	}
	return e.Find(func(x evidence.Exchange) bool {
		return x.Method == method && x.To(path) && (method != http.MethodPost || strings.Contains(x.Body, `"`+object+`"`) || strings.Contains(x.Body, "name: "+object))
	})
}

// answered checks that a request was made and how it was answered, by its status or a class of them such as 2 or 5.
func answered(method, version, object string, class int) func(lesson.Evidence) lesson.Outcome {
	want := fmt.Sprintf("%s of %s at %s: %dxx", method, orAll(object), version, class)
	return func(e lesson.Evidence) lesson.Outcome {
		x := sent(e, method, version, object)
		if x == nil {
			return kit.Holds(false, want, "nobody asked")
		}
		return kit.Holds(x.Status/100 == class, want, kit.Answer(*x))
	}
}

func orAll(object string) string {
	if object == "" {
		return "all"
	}
	return object
}

// all checks several things, and tells the first that does not hold.
func all(want string, checks ...func(lesson.Evidence) lesson.Outcome) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		for _, c := range checks {
			if o := c(e); o.Result != lesson.Passed {
				return kit.Holds(false, o.Want, o.Got)
			}
		}
		return kit.Holds(true, want, want)
	}
}

// strategy checks how the CRD is converted.
func strategy(want string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		if e.After.CRD == nil {
			return kit.Holds(false, want, "no CRD")
		}
		return lesson.Expected(want, e.After.CRD.Strategy)
	}
}

// conversions are the reviews that converted an object to a version.
func conversions(e lesson.Evidence, to, object string) []evidence.Conversion {
	var out []evidence.Conversion
	for _, c := range e.Conversions {
		if c.DesiredAPIVersion == e.Resource.Group+"/"+to && (object == "" || slices.Contains(c.Names, e.Namespace+"/"+object)) {
			out = append(out, c)
		}
	}
	return out
}

// converted reads a field of spec out of the objects of a review's answer.
func converted(c evidence.Conversion, field string) (any, bool) {
	var body struct {
		Response struct {
			ConvertedObjects []struct {
				Spec map[string]any `json:"spec"`
			} `json:"convertedObjects"`
		} `json:"response"`
	}
	if json.Unmarshal([]byte(c.Response), &body) != nil {
		return nil, false
	}
	for _, o := range body.Response.ConvertedObjects {
		if v, there := o.Spec[field]; there {
			return v, true
		}
	}
	return nil, false
}

// field reads a field of an exchange's response.
func field(x *evidence.Exchange, path ...string) (any, bool) {
	if x == nil {
		return nil, false
	}
	return (&evidence.View{Status: x.Status, Object: json.RawMessage(x.Response)}).Field(path...)
}

// isList says whether an exchange listed all objects of a version; with the query, where it is not empty.
func isList(e lesson.Evidence, x evidence.Exchange, version, query string) bool {
	return x.Method == http.MethodGet && x.To(evidence.CollectionPath(e.Resource, version, e.Namespace)) && strings.Contains(x.Path, query)
}
