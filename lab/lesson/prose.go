package lesson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"text/template"

	"github.com/crdlab/crdlab/lab/evidence"
)

// Prose is what a track or a step says to people: pieces of Markdown, each a template over Evidence.
type Prose struct {
	file   string
	Title  string
	pieces map[string]string
	order  []string
}

// ReadProse reads the prose of a step, or of the track where id is "track".
func (t *Track) ReadProse(id string) (*Prose, error) {
	p, err := ReadProse(t.Prose, id)
	if err != nil {
		return nil, fmt.Errorf("the prose of %s/%s: %w", t.ID, id, err)
	}
	return p, nil
}

// ReadProse reads a file of prose.
func ReadProse(from fs.FS, id string) (*Prose, error) {
	file := id + "." + Locale + ".md"
	raw, err := fs.ReadFile(from, file)
	if err != nil {
		return nil, err
	}
	p := &Prose{file: file, pieces: map[string]string{}}
	piece := ""
	for line := range strings.Lines(string(raw)) {
		if title, is := strings.CutPrefix(line, "# "); is {
			p.Title = strings.TrimSpace(title)
		} else if id, is := strings.CutPrefix(line, "## "); is {
			piece = strings.TrimSpace(id)
			p.order = append(p.order, piece)
		} else if piece != "" {
			p.pieces[piece] += line
		}
	}
	for id, text := range p.pieces {
		p.pieces[id] = strings.TrimSpace(text)
	}
	return p, nil
}

// Pieces are the headings, in their order.
func (p *Prose) Pieces() []string { return p.order }

// Has says whether there is a piece of that heading.
func (p *Prose) Has(id string) bool { return p.pieces[id] != "" }

// Render fills a piece in with what the evidence says. Paragraphs come back as one line each.
func (p *Prose) Render(t *Track, id string, e Evidence) (string, error) {
	text := p.pieces[id]
	if id == "title" {
		text = p.Title
	}
	if text == "" {
		return "", fmt.Errorf("%s: there is no %q", p.file, id)
	}
	tmpl, err := template.New(p.file + " " + id).Option("missingkey=error").Funcs(functions(t)).Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, e); err != nil {
		return "", err
	}
	return unwrap(out.String()), nil
}

// unwrap joins the lines of a paragraph; the screen breaks them where it has to.
func unwrap(text string) string {
	var out []string
	for _, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(para), "\n")
		joined := lines[0]
		for _, l := range lines[1:] {
			if strings.HasPrefix(l, "- ") {
				joined += "\n" + l
			} else {
				joined += " " + strings.TrimSpace(l)
			}
		}
		out = append(out, joined)
	}
	return strings.Join(out, "\n\n")
}

// functions are what prose may call besides the methods of Evidence.
func functions(t *Track) template.FuncMap {
	version := func(i int) func() string { return func() string { return t.Versions[i] } }
	f := template.FuncMap{
		"old":   version(0),
		"new":   version(len(t.Versions) - 1),
		"list":  func(s []string) string { return "[" + strings.Join(s, " ") + "]" },
		"names": func(s []string) string { return strings.Join(s, ", ") },
		"plural": func(n int, one, many string) string {
			if n == 1 {
				return fmt.Sprint(n, " ", one)
			}
			return fmt.Sprint(n, " ", many)
		},
		"field": func(name, value string) string { // what an object has: a value, or no such field
			if value == Nothing {
				return "no " + name
			}
			return name + ": *" + value + "*"
		},
	}
	return f
}

// StoredAt counts the objects whose bytes are at a version, after the step.
func (e Evidence) StoredAt(version string) int {
	if e.After == nil {
		return 0
	}
	return e.After.Stored.ByVersion[version]
}

// Total counts the objects, after the step.
func (e Evidence) Total() int {
	if e.After == nil {
		return 0
	}
	return e.After.Stored.Total
}

// StoredVersions is the CRD's record, after the step.
func (e Evidence) StoredVersions() []string { return e.After.StoredVersions() }

// AfterAction is what was there when an action of the step had been done; nil where it was not, or somebody did the step by
// hand.
func (e Evidence) AfterAction(id string) *evidence.Observation {
	for _, o := range e.During {
		if o != nil && o.After == id {
			return o
		}
	}
	return nil
}

// Migrated says whether a StorageVersionMigration has worked on the CRD, which carries its condition since.
func (e Evidence) Migrated() bool {
	if e.After == nil || e.After.CRD == nil {
		return false
	}
	_, migrated := e.After.CRD.Conditions["StorageMigrating"]
	return migrated
}

// Refusal is the last exchange that the server refused, of the step or by hand; nil where it refused none.
func (e Evidence) Refusal() *evidence.Exchange {
	for _, x := range slices.Backward(e.Exchanges) {
		if x.Refused() && (x.Actor == evidence.ByStep || x.Actor == evidence.ByHand) {
			return &x
		}
	}
	return nil
}

// Find returns the first exchange of the step, or by hand, that a function accepts; nil where there is none.
func (e Evidence) Find(accept func(evidence.Exchange) bool) *evidence.Exchange {
	for _, x := range e.Exchanges {
		if (x.Actor == evidence.ByStep || x.Actor == evidence.ByHand) && accept(x) {
			return &x
		}
	}
	return nil
}

// Status is the HTTP status with which an object was read at a version, after the step; 0 where it was not read.
func (e Evidence) Status(object, version string) int {
	if v := e.After.Object(object).View(version); v != nil {
		return v.Status
	}
	return 0
}

// Nothing stands for the value of a field that is not there.
const Nothing = "nothing"

// Value reads a field of an object's view as text, after the step: {{.Value "alpha" "v1" "spec" "size"}}; Nothing where the
// view has no such field.
func (e Evidence) Value(object, version string, path ...string) string {
	if v, ok := e.After.Object(object).View(version).Field(path...); ok {
		return fmt.Sprint(v)
	}
	return Nothing
}

// Bytes reads a field of an object's stored value as text, after the step; Nothing where the bytes have none.
func (e Evidence) Bytes(object string, path ...string) string {
	if o := e.After.Object(object); o != nil {
		if v, ok := o.Stored.Field(path...); ok {
			return fmt.Sprint(v)
		}
	}
	return Nothing
}

// Describe returns a track's title, its summary in one line, and the titles of its steps.
func (t *Track) Describe() (title, summary string, steps []string) {
	e := Evidence{}
	if p, err := t.ReadProse("track"); err == nil {
		title, _ = p.Render(t, "title", e)
		summary, _ = p.Render(t, "briefing", e)
	}
	for i := range t.Steps {
		steps = append(steps, t.StepTitle(i))
	}
	return title, summary, steps
}

// StepTitle is the title of a step; its id where it has no prose.
func (t *Track) StepTitle(i int) string {
	p, err := t.ReadProse(t.Steps[i].ID)
	if err != nil {
		return t.Steps[i].ID
	}
	title, err := p.Render(t, "title", Evidence{})
	if err != nil {
		return t.Steps[i].ID
	}
	return title
}

// Reviews tells how many conversions an action caused; of an action by hand that is not known.
func (e Evidence) Reviews(action string) string {
	n, counted := e.Calls[action]
	switch {
	case !counted:
		return "an uncounted number of reviews"
	case n == 1:
		return "1 review"
	}
	return fmt.Sprint(n, " reviews")
}

// IsDryRun is for Find: {{with .Find .IsDryRun}}.
func (e Evidence) IsDryRun() func(evidence.Exchange) bool {
	return func(x evidence.Exchange) bool { return x.DryRun() }
}

// IsTrim is for Find: a change of the record, status.storedVersions.
func (e Evidence) IsTrim() func(evidence.Exchange) bool {
	return func(x evidence.Exchange) bool {
		return x.Method == http.MethodPatch && x.To(evidence.DefinitionPath(e.Resource)+"/status")
	}
}

// Tested is the value that a JSON patch asked for by a "test" of a path: {{with .Find .IsTrim}}{{$.Tested . "/metadata/generation"}}{{end}};
// Nothing where it tested no such path.
func (e Evidence) Tested(x *evidence.Exchange, path string) string {
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	_ = json.Unmarshal([]byte(x.Body), &operations) // what is no JSON patch tests nothing
	for _, o := range operations {
		if o.Op == "test" && o.Path == path {
			return strings.Trim(string(o.Value), `"`)
		}
	}
	return Nothing
}

// IsApply is for Find: a server-side apply of an object, not of the CRD.
func (e Evidence) IsApply() func(evidence.Exchange) bool {
	return func(x evidence.Exchange) bool {
		return x.ContentType == evidence.ApplyPatch && !x.To(evidence.DefinitionPath(e.Resource))
	}
}

// IsNewCRD is for Find: an attempt to create the CRD.
func (e Evidence) IsNewCRD() func(evidence.Exchange) bool {
	return func(x evidence.Exchange) bool { return x.Method == http.MethodPost && x.To(evidence.DefinitionsPath) }
}

// ReviewsTo counts the conversions of the step to a version, as far as they are kept.
func (e Evidence) ReviewsTo(version string) int {
	n := 0
	for _, c := range e.Conversions {
		if c.DesiredAPIVersion == e.Resource.Group+"/"+version {
			n++
		}
	}
	return n
}

// IsList is for Find: a list of objects.
func (e Evidence) IsList() func(evidence.Exchange) bool {
	return func(x evidence.Exchange) bool {
		path, _, _ := strings.Cut(x.Path, "?")
		return x.Method == http.MethodGet && strings.HasPrefix(path, "/apis/"+e.Resource.Group+"/") && strings.HasSuffix(path, "/"+e.Resource.Plural)
	}
}

// Sent is the first request of a method for an object at a version, in the step: {{with .Sent "DELETE" new "alpha"}}{{.Status}}{{end}};
// nil where there was none.
func (e Evidence) Sent(method, version, object string) *evidence.Exchange {
	return e.Find(e.About(method, version, object))
}

// About accepts the requests of a method for an object at a version. A create is known by the object's name in its body.
func (e Evidence) About(method, version, object string) func(evidence.Exchange) bool {
	path := evidence.ObjectPath(e.Resource, version, e.Namespace, object)
	if method == http.MethodPost {
		path = evidence.CollectionPath(e.Resource, version, e.Namespace)
	}
	return func(x evidence.Exchange) bool {
		return x.Method == method && x.To(path) && (method != http.MethodPost || strings.Contains(x.Body, `"`+object+`"`) || strings.Contains(x.Body, "name: "+object))
	}
}

// Listing is the first list of all objects of a version in the step, as kubectl asks for one; nil where there was none.
func (e Evidence) Listing(version string) *evidence.Exchange {
	path := evidence.CollectionPath(e.Resource, version, e.Namespace)
	return e.Find(func(x evidence.Exchange) bool {
		return x.Method == http.MethodGet && x.To(path) && strings.Contains(x.Path, "limit=")
	})
}

// StoredVersion is the version of an object's bytes, after the step; empty where it is not known.
func (e Evidence) StoredVersion(object string) string { return e.After.Object(object).StoredVersion() }

// InAnswer reads a field of what an exchange was answered with, as text: {{with .Find .IsDryRun}}{{$.InAnswer . "spec" "tier"}}{{end}};
// "nothing" where the answer has no such field.
func (e Evidence) InAnswer(x *evidence.Exchange, path ...string) string {
	if v, ok := (&evidence.View{Status: x.Status, Object: json.RawMessage(x.Response)}).Field(path...); ok {
		return fmt.Sprint(v)
	}
	return "nothing"
}
