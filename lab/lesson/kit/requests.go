package kit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Answered checks that a request was made and that it was once answered so: by a status, or a class of them such as 2 or 5.
// By hand it may have been made more often, before the change or after it.
func Answered(method, version, object string, status int) func(lesson.Evidence) lesson.Outcome {
	want := fmt.Sprintf("%s of %s at %s: %d", method, object, version, status)
	if status < 10 {
		want += "xx"
	}
	return func(e lesson.Evidence) lesson.Outcome {
		made := e.About(method, version, object)
		x := e.Find(func(x evidence.Exchange) bool {
			return made(x) && (x.Status == status || x.Status/100 == status)
		})
		if x != nil {
			return Holds(true, want, want)
		}
		if x = e.Find(made); x == nil {
			return Holds(false, want, "nobody asked")
		}
		return Holds(false, want, Answer(*x))
	}
}

// All checks several things, and tells the first that does not hold.
func All(want string, checks ...func(lesson.Evidence) lesson.Outcome) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		for _, c := range checks {
			if o := c(e); o.Result != lesson.Passed {
				return Holds(false, o.Want, o.Got)
			}
		}
		return Holds(true, want, want)
	}
}

// Strategy checks how the CRD is converted.
func Strategy(want string) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		if e.After.CRD == nil {
			return Holds(false, want, "no CRD")
		}
		return lesson.Expected(want, e.After.CRD.Strategy)
	}
}

// ResponseField reads a field of an exchange's response.
func ResponseField(x *evidence.Exchange, path ...string) (any, bool) {
	if x == nil {
		return nil, false
	}
	return (&evidence.View{Status: x.Status, Object: json.RawMessage(x.Response)}).Field(path...)
}

// IsList says whether an exchange listed all objects of a version; with the query, where it is not empty.
func IsList(e lesson.Evidence, x evidence.Exchange, version, query string) bool {
	return x.Method == http.MethodGet && x.To(evidence.CollectionPath(e.Resource, version, e.Namespace)) && strings.Contains(x.Path, query)
}

// IsWatch says whether an exchange was a watch of the objects of a version.
func IsWatch(e lesson.Evidence, x evidence.Exchange, version string) bool {
	return IsList(e, x, version, "watch=")
}

// IfCached checks that a request was answered from the API server's cache. A server that has just begun has none: then
// nothing can be shown.
func IfCached(want string, find func(lesson.Evidence) *evidence.Exchange) func(lesson.Evidence) lesson.Outcome {
	return func(e lesson.Evidence) lesson.Outcome {
		x := find(e)
		if x != nil && x.Refused() {
			return lesson.Outcome{Result: lesson.Skipped, Want: want, Got: Answer(*x), Reason: "the API server had nothing in its cache, in one try"}
		}
		return Holds(x != nil, want, "nobody asked")
	}
}
