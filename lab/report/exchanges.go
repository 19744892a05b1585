package report

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
)

// request is one or several exchanges that are told as one: the same request to one object after the other, with the
// same answer.
type request struct {
	evidence.Exchange
	more   int  // how many like it followed
	wanted bool // it was refused, and the lesson wants that
}

// maxRequests is how many requests of an action are told; a JSON document has all of them.
const maxRequests = 12

// requests are the exchanges of an action, folded; the observer's own reads are left out.
func requests(s *lab.Step, a lab.Action) []request {
	var out []request
	for _, i := range a.Exchanges {
		if i < len(s.Exchanges) {
			out = fold(out, s.Exchanges[i])
		}
	}
	if n := len(out); n > 0 && wantsRefusal(s, a.ID) && out[n-1].Refused() {
		out[n-1].wanted = true
	}
	return out
}

// byHand are the requests of others in a step, such as the learner's kubectl.
func byHand(s *lab.Step) []request {
	var out []request
	for _, x := range s.Exchanges {
		if x.Actor == evidence.ByHand {
			out = fold(out, x)
		}
	}
	return out
}

// probes counts the requests by which the lab found out whether something is in effect.
func probes(s *lab.Step) int {
	n := 0
	for _, x := range s.Exchanges {
		if x.Actor == evidence.ByProbe {
			n++
		}
	}
	return n
}

func fold(out []request, x evidence.Exchange) []request {
	if x.Actor == evidence.ByObserver {
		return out
	}
	if n := len(out); n > 0 && alike(out[n-1].Exchange, x) {
		out[n-1].more++
		return out
	}
	return append(out, request{Exchange: x})
}

// alike says whether two exchanges differ in nothing but the object's name.
func alike(a, b evidence.Exchange) bool {
	return a.Actor == b.Actor && a.Status == b.Status && a.Method == b.Method && a.ContentType == b.ContentType &&
		a.Reason == b.Reason && slices.Equal(a.Causes, b.Causes) && slices.Equal(a.Warnings, b.Warnings) &&
		parsePath(a.Path).collection() == parsePath(b.Path).collection()
}

// wantsRefusal says whether the lesson wants the last request of an action refused.
func wantsRefusal(s *lab.Step, action string) bool {
	if s.Lesson == nil {
		return false
	}
	for _, a := range s.Lesson.Actions {
		if a.ID == action {
			return a.Expect.Refused
		}
	}
	return false
}

// path is the path of a request, taken apart.
type path struct {
	version     string // of the API that was asked; empty for CRDs and whatever is no resource
	resource    string // crds, or the plural
	name        string
	subresource string
	query       url.Values
	bare        string // as it came, without its query
}

func parsePath(p string) path {
	bare, query, _ := strings.Cut(p, "?")
	out := path{bare: bare}
	out.query, _ = url.ParseQuery(query)
	parts := strings.Split(strings.Trim(bare, "/"), "/")
	if len(parts) < 4 || parts[0] != "apis" {
		return out
	}
	group, version, rest := parts[1], parts[2], parts[3:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	out.resource = rest[0]
	if len(rest) > 1 {
		out.name = rest[1]
	}
	if len(rest) > 2 {
		out.subresource = strings.Join(rest[2:], "/")
	}
	if group == "apiextensions.k8s.io" {
		out.resource = "crds"
	} else {
		out.version = version
	}
	return out
}

// collection is the path without the object's name.
func (p path) collection() string {
	if p.resource == "" || p.name == "" {
		return p.bare + "?" + p.query.Encode()
	}
	return strings.Join([]string{p.version, p.resource, p.subresource, p.query.Encode()}, " ")
}

// short is the path as it is shown: version …/plural/name, without the group and the namespace.
func (p path) short() string {
	if p.resource == "" {
		return p.bare
	}
	out := p.resource
	if p.version != "" {
		out = p.version + " …/" + p.resource
	}
	for _, part := range []string{p.name, p.subresource} {
		if part != "" {
			out += "/" + part
		}
	}
	return out
}

// how says what a request was, beyond its method and path: the sort of patch, who applied, a dry run.
func how(x evidence.Exchange) string {
	q := parsePath(x.Path).query
	var out []string
	switch x.ContentType {
	case evidence.ApplyPatch:
		out = append(out, strings.TrimSuffix("apply as "+q.Get("fieldManager"), " as "))
	case evidence.MergePatch:
		out = append(out, "merge patch")
	case evidence.JSONPatch:
		out = append(out, "JSON patch")
	}
	if x.DryRun() {
		out = append(out, "dry run")
	}
	return strings.Join(out, ", ")
}

// refusal is what the server said of a request that it refused, cause by cause.
func refusal(x evidence.Exchange) []string {
	if !x.Refused() && x.Status != 0 {
		return nil
	}
	if len(x.Causes) == 0 {
		return []string{firstLine(x.Message)}
	}
	var out []string
	for _, c := range x.Causes {
		out = append(out, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
	}
	return out
}

// status is the answer's status, or that there was none.
func status(x evidence.Exchange) string {
	if x.Status == 0 {
		return "---"
	}
	return fmt.Sprint(x.Status)
}

// by says who sent a request, where it was not the step's action.
func by(x evidence.Exchange) string {
	if x.Actor == evidence.ByHand {
		return "by hand"
	}
	return ""
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return l
}
