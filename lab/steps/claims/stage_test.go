package claims

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
	"github.com/crdlab/crdlab/lab/storage"
)

const (
	v1alpha1 = "v1alpha1"
	v1beta1  = "v1beta1"
)

// usual is a CRD of two versions: old is in v1alpha1 alone, tier in v1beta1 alone, with a default.
var usual = scene.Widgets(
	`{type: object, properties: {size: {type: integer}, color: {type: string}, old: {type: string}}}`,
	`{type: object, properties: {size: {type: integer, maximum: 1000}, color: {type: string}, tier: {type: string, default: standard}}}`)

// renamed is a CRD whose versions call one field differently.
var renamed = scene.Widgets(
	`{type: object, properties: {label: {type: string}, replicas: {type: integer}}}`,
	`{type: object, properties: {displayName: {type: string}, replicas: {type: integer}}}`)

var mappings = []conversion.Mapping{
	{From: v1alpha1, To: v1beta1, Do: []conversion.Operation{conversion.Rename("spec.label", "displayName")}},
	{From: v1beta1, To: v1alpha1, Do: []conversion.Operation{conversion.Rename("spec.displayName", "label")}},
}

// stage is a CRD of its own. What is asked by its methods stands in the book; what scene.Scene's do is preparation.
type stage struct {
	*scene.Scene
	book    *book
	webhook *conversion.Server
}

// stage sets a CRD up; v1alpha1 is its storage version.
func (b *book) stage(definition string) *stage {
	b.Helper()
	s := &stage{Scene: scene.New(b.T, definition, scene.Namespace), book: b}
	serverSays = s.Server.Info().Version
	return s
}

// ── what is asked ──

// ask sends a request, and notes it with its answer.
func (s *stage) ask(r evidence.Request) *evidence.Response {
	s.Helper()
	resp, err := s.Client.Do(s.Context(), r)
	s.Must(err)
	body := ""
	if len(r.Body) > 0 && r.ContentType != evidence.ApplyPatch && r.Method != http.MethodPost && r.Method != http.MethodPut {
		body = "  " + string(r.Body)
	}
	s.book.note("%s", s.mask(fmt.Sprintf("%s %s%s", r.Method, resp.Path, body)))
	s.book.note("%s", s.mask("  "+told(resp)))
	for _, w := range resp.Warnings {
		s.book.note("%s", s.mask("  Warning: "+w))
	}
	return resp
}

// told is an answer in one line: the status, and the reason and fields of a refusal, or what the object shows.
func told(resp *evidence.Response) string {
	out := []string{fmt.Sprint(resp.Status)}
	if resp.Refused() {
		if resp.Reason != "" {
			out = append(out, resp.Reason)
		}
		for _, c := range resp.Causes {
			if c.Field != "" {
				out = append(out, c.Field)
			}
		}
		if resp.Status >= 500 { // its reason alone tells nothing
			return strings.Join(out, " ") + "\n  " + cause(resp.Message)
		}
		return strings.Join(out, " ")
	}
	var o struct {
		Kind, APIVersion string
		Items            []json.RawMessage
		Spec             json.RawMessage
	}
	_ = json.Unmarshal(resp.Body, &o)
	switch {
	case strings.HasSuffix(o.Kind, "List"):
		out = append(out, o.Kind, fmt.Sprint(len(o.Items), " items"))
	case o.Kind == "Widget":
		out = append(out, o.APIVersion, string(o.Spec))
	}
	return strings.Join(out, " ")
}

// cause is the part of a message that says why: a storage error tells much before.
func cause(message string) string {
	if _, why, found := strings.Cut(message, "AdditionalErrorMsg: "); found {
		return why
	}
	return message
}

// varying is what differs from run to run.
var varying = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`revision=\d+`), "revision=N"},
	{regexp.MustCompile(`ResourceVersion: \d+`), "ResourceVersion: N"},
	{regexp.MustCompile(`(/convert\?timeout=30s": ).*`), "${1}…"}, // at which moment a connection was cut is chance
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`scene\d+\.example\.com`), "lab.example.com"},
}

// mask replaces what differs from run to run, and shortens paths.
func (s *stage) mask(line string) string {
	line = strings.NewReplacer(
		evidence.DefinitionPath(s.Resource), "crds/"+s.Resource.Plural,
		evidence.CollectionPath(s.Resource, v1alpha1, s.Namespace), v1alpha1+" …/"+s.Resource.Plural,
		evidence.CollectionPath(s.Resource, v1beta1, s.Namespace), v1beta1+" …/"+s.Resource.Plural,
		s.Resource.Group+"/"+v1alpha1+" {", v1alpha1+" {", s.Resource.Group+"/"+v1beta1+" {", v1beta1+" {",
	).Replace(line)
	for _, v := range varying {
		line = v.what.ReplaceAllString(line, v.with)
	}
	return line
}

func (s *stage) get(version, name string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodGet, Path: s.Path(version, name)})
}

// list asks as kubectl does.
func (s *stage) list(version string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodGet, Path: s.Path(version, ""), Query: url.Values{"limit": {"500"}}})
}

func (s *stage) post(version, name, spec string) *evidence.Response {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, s.Resource.Group, version, name, spec)
	return s.ask(evidence.Request{Method: http.MethodPost, Path: s.Path(version, ""), ContentType: evidence.JSON, Body: []byte(body)})
}

// putBack sends an object back as it was read.
func (s *stage) putBack(version, name string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodPut, Path: s.Path(version, name), ContentType: evidence.JSON, Body: s.get(version, name).Body})
}

// merge is a merge patch of an object.
func (s *stage) merge(version, name, patch string, query ...string) *evidence.Response {
	s.Helper()
	q, err := url.ParseQuery(strings.Join(query, "&"))
	s.Must(err)
	return s.ask(evidence.Request{Method: http.MethodPatch, Path: s.Path(version, name), Query: q, ContentType: evidence.MergePatch, Body: []byte(patch)})
}

// apply is a server-side apply by the manager team.
func (s *stage) apply(version, name, spec string) *evidence.Response {
	s.Helper()
	body := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}`, s.Resource.Group, version, name, spec)
	return s.ask(evidence.Request{Method: http.MethodPatch, Path: s.Path(version, name), Query: url.Values{"fieldManager": {"team"}},
		ContentType: evidence.ApplyPatch, Body: []byte(body)})
}

// crd is a JSON patch of the CRD.
func (s *stage) crd(patch string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodPatch, Path: evidence.DefinitionPath(s.Resource), ContentType: evidence.JSONPatch, Body: []byte(patch)})
}

// status is a merge patch of the CRD's status, through its subresource or the CRD itself.
func (s *stage) status(subresource, stored string) *evidence.Response {
	s.Helper()
	return s.ask(evidence.Request{Method: http.MethodPatch, Path: evidence.DefinitionPath(s.Resource) + subresource, ContentType: evidence.MergePatch,
		Body: []byte(`{"status":{"storedVersions":` + stored + `}}`)})
}

// ── what is looked at ──

// bytes are the stored value of an object.
func (s *stage) bytes(name string) stored {
	s.Helper()
	b := s.peek(name)
	s.book.note("etcd %s  %s %s", name, b.version, b.spec)
	return b
}

// peek looks without a note.
func (s *stage) peek(name string) stored {
	s.Helper()
	v, err := s.Storage.Get(s.Context(), s.Resource, s.Namespace, name)
	s.Must(err)
	var o struct {
		Metadata struct{ Generation int64 }
		Spec     json.RawMessage
	}
	s.Must(json.Unmarshal(v.Data, &o))
	return stored{version: v.Version(), spec: string(o.Spec), revision: v.ModRevision, generation: o.Metadata.Generation}
}

// stored is what etcd has of an object.
type stored struct {
	version, spec string
	revision      int64
	generation    int64
}

func (v stored) has(field string) bool { return has([]byte(v.spec), field) }

// counts are the objects by stored version.
func (s *stage) counts() map[string]int {
	s.Helper()
	c, err := storage.Count(s.Context(), s.Storage, s.Resource)
	s.Must(err)
	var out []string
	for v, n := range c.ByVersion {
		out = append(out, fmt.Sprint(v, ": ", n))
	}
	sort.Strings(out)
	s.book.note("etcd by version  %s", strings.Join(out, ", "))
	return c.ByVersion
}

// record is status.storedVersions.
func (s *stage) record() []string {
	s.Helper()
	r := s.Definition().Status.StoredVersions
	s.book.note("storedVersions  [%s]", strings.Join(r, " "))
	return r
}

// spec is the part of an answer that the lab's widgets say something in.
func spec(resp *evidence.Response) json.RawMessage {
	var o struct{ Spec json.RawMessage }
	_ = json.Unmarshal(resp.Body, &o)
	return o.Spec
}

// shown is the version that an object shows in an answer.
func shown(resp *evidence.Response) string {
	var o struct{ APIVersion string }
	_ = json.Unmarshal(resp.Body, &o)
	return o.APIVersion[strings.LastIndex(o.APIVersion, "/")+1:]
}

// has says whether a JSON object has a field.
func has(object json.RawMessage, field string) bool {
	var m map[string]any
	if json.Unmarshal(object, &m) != nil {
		return false
	}
	_, there := m[field]
	return there
}

// ── preparation ──

// switchStorage makes v1beta1 the storage version, and waits until it is in effect.
func (s *stage) switchStorage() {
	s.Helper()
	s.PatchCRD(scene.StoreBeta)
	w := &rewrite.Rewriter{Client: s.Client, Storage: s.Storage, Resource: s.Resource, Namespace: s.Namespace}
	effect, err := w.WaitInEffect(s.Context(), v1beta1, nil)
	s.Must(err)
	if !effect.Seen {
		s.Fatal("the bytes can be read, and yet the effect of the switch was not seen")
	}
}

// rewrite makes the server write every object again.
func (s *stage) rewrite(names ...string) {
	s.Helper()
	for _, n := range names {
		s.Accepted(s.Client.Patch(s.Context(), s.Path(v1beta1, n), evidence.MergePatch, "rewriter", []byte(`{}`)))
	}
}

// noting changes the CRD by a JSON patch that stands in the book, and waits until the server has taken it up: it ends every
// watch of what it replaces.
func (s *stage) noting(patch string) *evidence.Response {
	s.Helper()
	ended, err := s.Client.WatchEnds(s.Context(), s.Path(v1beta1, ""))
	s.Must(err)
	resp := s.crd(patch)
	if !resp.Refused() {
		<-ended
	}
	return resp
}

// trim declares storedVersions through the status.
func (s *stage) trim(stored string) *evidence.Response {
	s.Helper()
	return s.status("/status", stored)
}

// ── webhooks ──

// withWebhook sets up a CRD of renamed that a webhook converts, and says when it does.
func (b *book) withWebhook() *stage {
	b.Helper()
	s := b.stage(renamed)
	listener, err := s.Server.ListenWebhook(s.Context())
	s.Must(err)
	s.webhook, err = conversion.Serve(s.Context(), listener, conversion.Options{Groups: []string{s.Resource.Group}, Mappings: mappings})
	s.Must(err)
	b.Cleanup(func() {
		if err := s.webhook.Close(); err != nil {
			b.Error(err)
		}
	})
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": s.webhook.Conversion()}})
	s.Must(err)
	ended, err := s.Client.WatchEnds(s.Context(), s.Path(v1beta1, ""))
	s.Must(err)
	s.Accepted(s.Client.Patch(s.Context(), evidence.DefinitionPath(s.Resource), evidence.MergePatch, "", patch))
	<-ended
	for i, n := range []string{"one", "two", "three"} {
		s.Create(v1alpha1, n, fmt.Sprintf(`{"label":"%s","replicas":%d}`, n, i))
	}
	s.ready()
	return s
}

// ready waits until both versions are listed, from caches that are full, and the webhook is asked no more.
func (s *stage) ready() {
	s.Helper()
	for _, v := range s.Definition().Spec.Versions {
		if v.Served {
			s.Until(v.Name+" is listed", func() bool { return s.Get(v.Name, "").Status == http.StatusOK })
		}
	}
	s.quiet()
}

// quietFor is how long the webhook must not have been asked for it to be quiet. An event for a cache is converted a few
// milliseconds after the write.
const quietFor = 250 * time.Millisecond

func (s *stage) quiet() {
	s.Helper()
	for {
		select {
		case <-s.webhook.Log().Grown():
		case <-time.After(quietFor):
			return
		case <-s.Context().Done():
			s.Fatal("the webhook is asked again and again")
		}
	}
}

// reviews counts the ConversionReviews that something causes, and the objects of the largest.
func (s *stage) reviews(do func()) (n, largest int) {
	s.Helper()
	s.quiet()
	from := s.webhook.Log().Seq()
	do()
	s.quiet()
	asked := s.webhook.Log().Since(from)
	to := map[string]int{}
	for _, c := range asked {
		largest = max(largest, c.Objects)
		to[strings.TrimPrefix(c.DesiredAPIVersion, s.Resource.Group+"/")]++
	}
	line := fmt.Sprint("ConversionReviews: ", len(asked))
	if len(asked) > 0 {
		line += fmt.Sprintf(" (to %s: %d, to %s: %d), objects in the largest: %d", v1alpha1, to[v1alpha1], v1beta1, to[v1beta1], largest)
	}
	s.book.note("%s", line)
	return len(asked), largest
}

// fault switches a fault of the webhook on; empty heals it.
func (s *stage) fault(id string) {
	s.Helper()
	f, err := conversion.FaultByID(id)
	s.Must(err)
	s.Must(s.webhook.SetFault(f))
	if id != "" {
		s.book.note("(the webhook: %s)", strings.TrimSuffix(f.Does, "."))
	}
}

// answer is a part of the object in the webhook's newest answer, such as "spec" or "metadata.labels".
func (s *stage) answer(part string) string {
	s.Helper()
	all := s.webhook.Log().Since(s.webhook.Log().Seq() - 1)
	var review struct {
		Response struct{ ConvertedObjects []json.RawMessage }
	}
	if len(all) != 1 || json.Unmarshal([]byte(all[0].Response), &review) != nil || len(review.Response.ConvertedObjects) != 1 {
		s.Fatalf("the webhook's last answer is no review of one object: %v", all)
	}
	value, _ := (&evidence.Value{Value: review.Response.ConvertedObjects[0]}).Field(strings.Split(part, ".")...)
	out, err := json.Marshal(value)
	s.Must(err)
	s.book.note("  the webhook answered %s %s", part, out)
	return string(out)
}

// unserve is a JSON patch.
func unserve(index int) string {
	return fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/%d/served","value":false}]`, index)
}

// remove takes v1alpha1 out of spec.versions.
const remove = `[{"op":"remove","path":"/spec/versions/0"}]`

func equal(a []string, b ...string) bool { return slices.Equal(a, b) }
