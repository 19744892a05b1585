package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crdlab/crdlab/lab/evidence"
)

// longest is how much of a cause is told, in characters.
const longest = 200

// answer is the status of a response, and what it says in one line.
func (r *row) answer(patient context.Context, c *asked, resp *evidence.Response, err error) (int, string) {
	switch {
	case err != nil && patient.Err() != nil:
		return 0, "no answer in " + inWords(r.Patience)
	case err != nil:
		return 0, cause(err.Error(), c.object)
	case resp.Refused():
		return resp.Status, cause(resp.Message, c.object)
	}
	return resp.Status, r.compare(c, resp.Body)
}

func inWords(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// noise is what stands around the cause in a message: it is the same for many causes, or different each time.
var noise = []struct {
	what *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`^.*conversion webhook for \S+, Kind=\S+ failed: `), ""}, // who was asked: always the same
	{regexp.MustCompile(`^.*conversion webhook for \S+, Kind=\S+ returned `), "it returned "},
	{regexp.MustCompile(`\b[A-Z][a-z]+ "https?://[^"]*": `), ""},               // where, in front of why
	{regexp.MustCompile(`\b(read|write|dial) tcp [^ ]*: `), ""},                // ports of this moment
	{regexp.MustCompile(`\b(read|write|connect): `), ""},                       // how far it came by chance
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "…"},     // a uid of this moment
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T[0-9:.]+(Z|[+-]\d{2}:\d{2})`), "…"}, // a time
	{regexp.MustCompile(` into Go value of type struct \{.*\}`), ""},           // a type of the server's
	{regexp.MustCompile(`&[\w.]+\{Value:([^}]*)\}`), "$1"},                     // a value within such a one
	{regexp.MustCompile(` \(and \d+ more\)`), ""},                              // how many objects there are
	{regexp.MustCompile(`\s+`), " "},
}

// cause is the part of a message that tells why, in one line. The object that it is about is NAME.
func cause(message, object string) string {
	if object != "" {
		message = strings.ReplaceAll(message, object, "NAME")
	}
	for _, n := range noise {
		message = n.what.ReplaceAllString(message, n.put)
	}
	message = strings.TrimSpace(message)
	if message == "" {
		return "it says nothing"
	}
	if r := []rune(message); len(r) > longest {
		return string(r[:longest-1]) + "…"
	}
	return message
}

// compare says in which fields an answer is not what a healthy server would answer.
func (r *row) compare(c *asked, body []byte) string {
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		return "no JSON: " + cause(string(body), c.object)
	}
	if items, isList := got["items"].([]any); isList {
		if meta, ok := got["metadata"].(map[string]any); ok && c.Operation == List && c.At == Stored {
			r.listed, _ = meta["resourceVersion"].(string)
		}
		return r.compareList(c.At, items)
	}
	if got["kind"] == "Status" {
		return fmt.Sprint(got["status"])
	}
	want := r.expected(c)
	return told(differences("", content(want), content(got)))
}

func (r *row) compareList(at string, items []any) string {
	differ := map[string]bool{}
	for _, item := range items {
		o, _ := item.(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		if was := r.objects[at+" "+fmt.Sprint(meta["name"])]; was != nil {
			for _, d := range differences("", content(was), content(o)) {
				differ[d] = true
			}
		}
	}
	return fmt.Sprintf("%d objects, %s", len(items), told(slices.Sorted(maps.Keys(differ))))
}

// expected is the object that a cell's operation would answer with where all is well.
func (r *row) expected(c *asked) map[string]any {
	if c.Operation == Create {
		return r.widget(c.At, c.object)
	}
	want := content(r.objects[c.At+" "+c.object])
	if c.Operation == Patch || c.Operation == Apply || c.Operation == Watch {
		spec := maps.Clone(want["spec"].(map[string]any))
		spec["replicas"] = replicas
		want["spec"] = spec
	}
	return want
}

// content is an object without what the server alone says of it.
func content(o map[string]any) map[string]any {
	var out map[string]any
	if json.Unmarshal(encoded(o), &out) != nil {
		return o
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		for _, own := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
			delete(meta, own)
		}
	}
	return out
}

// told says in one line what differs.
func told(differences []string) string {
	if len(differences) == 0 {
		return "as it should be"
	}
	return "but " + strings.Join(differences, ", ")
}

// differences are the fields in which two objects differ, each with what it is instead.
func differences(path string, want, got any) []string {
	w, isObject := want.(map[string]any)
	g, stays := got.(map[string]any)
	switch {
	case isObject && stays:
		var out []string
		for _, k := range slices.Sorted(maps.Keys(union(w, g))) {
			out = append(out, differences(strings.TrimPrefix(path+"."+k, "."), w[k], g[k])...)
		}
		return out
	case reflect.DeepEqual(want, got):
		return nil
	case want == nil:
		return []string{"+" + path}
	case got == nil:
		return []string{"-" + path}
	}
	return []string{fmt.Sprintf("%s is %s", path, encoded(got))}
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
