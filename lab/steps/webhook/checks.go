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

// sent finds an exchange about an object of the track at a version.
func sent(e lesson.Evidence, method, version, object string) *evidence.Exchange {
	return e.Find(about(e, method, version, object))
}

// about accepts the exchanges about an object of the track at a version.
func about(e lesson.Evidence, method, version, object string) func(evidence.Exchange) bool {
	path := kit.ObjectPath(e, version, object)
	if method == http.MethodPost {
		path = evidence.CollectionPath(e.Resource, version, e.Namespace)
	}
	return func(x evidence.Exchange) bool {
		return x.Method == method && x.To(path) && (method != http.MethodPost || strings.Contains(x.Body, `"`+object+`"`) || strings.Contains(x.Body, "name: "+object))
	}
}

// answered checks that a request was made and that it was once answered so: by a status, or a class of them such as 2 or 5.
// By hand it may have been made more often, before the change or after it.
func answered(method, version, object string, status int) func(lesson.Evidence) lesson.Outcome {
	want := fmt.Sprintf("%s of %s at %s: %d", method, object, version, status)
	if status < 10 {
		want += "xx"
	}
	return func(e lesson.Evidence) lesson.Outcome {
		made := about(e, method, version, object)
		x := e.Find(func(x evidence.Exchange) bool {
			return made(x) && (x.Status == status || x.Status/100 == status)
		})
		if x != nil {
			return kit.Holds(true, want, want)
		}
		if x = e.Find(made); x == nil {
			return kit.Holds(false, want, "nobody asked")
		}
		return kit.Holds(false, want, kit.Answer(*x))
	}
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

// converted checks that the webhook, asked for an object at a version, answered with a field, and with what value where one
// is given.
func converted(to, object string, value any, path ...string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		want := fmt.Sprintf("a review of %s to %s, answered with %s", object, to, strings.Join(path, "."))
		for _, c := range conversions(e, to, object) {
			if got, there := answer(c, path...); there && (value == nil || value == got) {
				return kit.Holds(true, want, want)
			}
		}
		return kit.Holds(false, want, "no answer had it")
	}
}

// answer reads a field out of the first object of a review's answer.
func answer(c evidence.Conversion, path ...string) (any, bool) {
	var body struct {
		Response struct{ ConvertedObjects []json.RawMessage }
	}
	if json.Unmarshal([]byte(c.Response), &body) != nil || len(body.Response.ConvertedObjects) == 0 {
		return nil, false
	}
	return (&evidence.Value{Value: body.Response.ConvertedObjects[0]}).Field(path...)
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
