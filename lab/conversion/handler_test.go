package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
)

const testGroup = "lab.example.com"

// unserved is a Server without a network.
func unserved(t testing.TB) *Server {
	t.Helper()
	s, err := newServer(apiextensionsv1.ServiceReference{Namespace: "crdlab", Name: "webhook"}, []string{"webhook.crdlab.svc"},
		Options{Groups: []string{testGroup}, Mappings: widgetMappings})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(s *Server, method, path, contentType string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	r.Method = method
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.handle(w, r)
	return w
}

func post(s *Server, body string) *httptest.ResponseRecorder {
	return send(s, http.MethodPost, Path, evidence.JSON, []byte(body))
}

// reviewOf is a review that asks for objects at v1beta1.
func reviewOf(objects ...string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u-1",
		"desiredAPIVersion":"lab.example.com/v1beta1","objects":[%s]}}`, strings.Join(objects, ","))
}

func widget(version, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"lab.example.com/%s","kind":"Widget","metadata":{"name":"one","namespace":"crdlab","uid":"x",
		"finalizers":["a/b"],"labels":{"l":"1"},"annotations":{"a":"2"},"generation":7,"managedFields":[{"manager":"m"}]}%s}`, version, rest)
}

func TestWhatNoAPIServerSendsIsRefusedInOneLine(t *testing.T) {
	s := unserved(t)
	good := widget("v1alpha1", `,"spec":{"label":"x"}`)
	for what, c := range map[string]struct {
		status int
		say    string
		method string
		path   string
		kind   string
		body   string
	}{
		"another method":          {status: 405, say: "by POST", method: http.MethodGet},
		"another path":            {status: 404, say: Path, path: "/"},
		"another content type":    {status: 415, say: "application/json", kind: "application/yaml"},
		"no content type":         {status: 415, say: "application/json", kind: " "},
		"nothing":                 {status: 400, say: "no ConversionReview", body: " "},
		"garbage":                 {status: 400, say: "no ConversionReview", body: "\x00\xff{"},
		"more than one value":     {status: 400, say: "no ConversionReview", body: reviewOf(good) + "{}"},
		"a list":                  {status: 400, say: "no ConversionReview", body: "[]"},
		"null":                    {status: 400, say: "not a ConversionReview", body: "null"},
		"another kind":            {status: 400, say: "not a ConversionReview", body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`},
		"v1beta1 of the review":   {status: 400, say: "not a ConversionReview", body: strings.Replace(reviewOf(good), "k8s.io/v1", "k8s.io/v1beta1", 1)},
		"no request":              {status: 400, say: "no request", body: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`},
		"no uid":                  {status: 400, say: "no uid", body: strings.Replace(reviewOf(good), "u-1", "", 1)},
		"no objects":              {status: 400, say: "no objects", body: reviewOf()},
		"another group":           {status: 400, say: "desiredAPIVersion", body: strings.Replace(reviewOf(good), "lab.example.com/v1beta1", "apps/v1", 1)},
		"no group":                {status: 400, say: "desiredAPIVersion", body: strings.Replace(reviewOf(good), "lab.example.com/v1beta1", "v1beta1", 1)},
		"no version":              {status: 400, say: "desiredAPIVersion", body: strings.Replace(reviewOf(good), "lab.example.com/v1beta1", "lab.example.com/", 1)},
		"an object of another":    {status: 400, say: "objects[1]: apiVersion", body: reviewOf(good, strings.Replace(good, testGroup, "other.example.com", 1))},
		"an object that is null":  {status: 400, say: "objects[0]: it is no object", body: reviewOf("null")},
		"an object that is text":  {status: 400, say: "objects[0]: it is no object", body: reviewOf(`"x"`)},
		"an object without kind":  {status: 400, say: "no kind", body: reviewOf(strings.Replace(good, `"Widget"`, `1`, 1))},
		"an object without meta":  {status: 400, say: "no metadata", body: reviewOf(`{"apiVersion":"lab.example.com/v1alpha1","kind":"Widget"}`)},
		"deep objects":            {status: 400, say: "nested more than", body: reviewOf(widget("v1alpha1", `,"spec":`+strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000)))},
		"a million open brackets": {status: 400, say: "nested more than", body: strings.Repeat("[", 1_000_000)},
		"eleven MiB":              {status: 413, say: "at most 10 MiB", body: strings.Repeat(" ", 11<<20)},
	} {
		if c.method == "" {
			c.method = http.MethodPost
		}
		if c.path == "" {
			c.path = Path
		}
		if c.kind == "" {
			c.kind = "application/json; charset=utf-8"
		}
		if c.body == "" {
			c.body = reviewOf(good)
		}
		got := send(s, c.method, c.path, strings.TrimSpace(c.kind), []byte(c.body))
		text := got.Body.String()
		if got.Code != c.status || !strings.Contains(text, c.say) || strings.Count(text, "\n") != 1 || len(text) > 400 {
			t.Errorf("%s: %d %.500q, want %d with %q in one line", what, got.Code, text, c.status, c.say)
		}
	}
	if s.Log().Seq() != 0 {
		t.Errorf("in the log: %+v", s.Log().Since(0))
	}
	if got := post(s, reviewOf(good)); got.Code != http.StatusOK {
		t.Errorf("and what one sends: %d %s", got.Code, got.Body)
	}
}

// answerOf reads a ConversionReview that was answered.
func answerOf(t *testing.T, w *httptest.ResponseRecorder) *apiextensionsv1.ConversionResponse {
	t.Helper()
	var out apiextensionsv1.ConversionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK || out.Response == nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if out.Kind != "ConversionReview" || out.APIVersion != "apiextensions.k8s.io/v1" {
		t.Errorf("it is a %s of %s", out.Kind, out.APIVersion)
	}
	return out.Response
}

func TestAnUnknownVersionOfTheGroupIsAFailedResult(t *testing.T) {
	for what, body := range map[string]string{
		"from it": reviewOf(widget("v1alpha1", ""), widget("v7", "")),
		"to it":   strings.Replace(reviewOf(widget("v1alpha1", "")), "/v1beta1", "/v7", 1),
	} {
		s := unserved(t)
		got := answerOf(t, post(s, body))
		if got.Result.Status != "Failure" || !holds(got.Result.Message, "Widget crdlab/one", "no conversion from", "v7") || len(got.ConvertedObjects) != 0 {
			t.Errorf("%s: %+v", what, got)
		}
		if log := s.Log().Since(0); len(log) != 1 || log[0].Result != evidence.ConversionFailed || log[0].Message != got.Result.Message {
			t.Errorf("%s: in the log: %+v", what, log)
		}
	}
}

func TestAnObjectThatAMappingCannotChangeIsAFailedResult(t *testing.T) {
	got := answerOf(t, post(unserved(t), reviewOf(widget("v1alpha1", `,"spec":"a text"`))))
	if got.Result.Status != "Failure" || !holds(got.Result.Message, "crdlab/one", "spec.label") {
		t.Errorf("%+v", got.Result)
	}
}

func TestOnlyTheStashChangesTheMetadata(t *testing.T) {
	in := []string{widget("v1alpha1", `,"spec":{"label":"x","color":"red"}`), widget("v1beta1", `,"spec":{"displayName":"y"}`), widget("v1alpha1", "")}
	got := answerOf(t, post(unserved(t), reviewOf(in...)))
	if got.UID != "u-1" || got.Result.Status != "Success" || len(got.ConvertedObjects) != len(in) {
		t.Fatalf("%+v", got)
	}
	for i, raw := range got.ConvertedObjects {
		var was, is map[string]any
		if err := decode([]byte(in[i]), &was); err != nil {
			t.Fatal(err)
		}
		if err := decode(raw.Raw, &is); err != nil {
			t.Fatal(err)
		}
		annotations := metadata(is)["annotations"].(map[string]any)
		if _, stashed := annotations[StashPrefix+"v1alpha1"]; stashed != (i == 0) {
			t.Errorf("objects[%d]: its annotations are %v", i, annotations)
		}
		delete(annotations, StashPrefix+"v1alpha1")
		if !reflect.DeepEqual(metadata(was), metadata(is)) || is["apiVersion"] != "lab.example.com/v1beta1" || is["kind"] != "Widget" {
			t.Errorf("objects[%d]: %v became %v", i, was, is)
		}
	}
}

func TestOtherMappingsAnswerFromThenOn(t *testing.T) {
	s, in := unserved(t), reviewOf(widget("v1alpha1", `,"spec":{"label":"x"}`))
	spec := func() any {
		var is map[string]any
		if err := decode(answerOf(t, post(s, in)).ConvertedObjects[0].Raw, &is); err != nil {
			t.Fatal(err)
		}
		return is["spec"]
	}
	if got := spec(); !reflect.DeepEqual(got, map[string]any{"displayName": "x"}) {
		t.Errorf("at first: %v", got)
	}
	if err := s.Deploy([]Mapping{{From: "v1alpha1", To: "v1beta1", Do: []Operation{Drop("spec.label")}}}); err != nil {
		t.Fatal(err)
	}
	if got := spec(); !reflect.DeepEqual(got, map[string]any{}) {
		t.Errorf("by the other mappings: %v", got)
	}
	if err := s.Deploy([]Mapping{{From: "v1alpha1", To: "v1alpha1"}}); err == nil {
		t.Error("mappings that cannot be were taken")
	}
	if got := spec(); !reflect.DeepEqual(got, map[string]any{}) {
		t.Errorf("after others were refused: %v", got)
	}
}

func TestTheLogKeepsEveryReview(t *testing.T) {
	s := unserved(t)
	body := reviewOf(widget("v1alpha1", `,"spec":{"label":"`+strings.Repeat("x", 20<<10)+`"}`), widget("v1beta1", ""))
	answer := post(s, body).Body.String()
	got := s.Log().Since(0)[0]
	if got.Seq != 1 || got.At.IsZero() || got.UID != "u-1" || got.DesiredAPIVersion != "lab.example.com/v1beta1" || got.Objects != 2 ||
		got.From != "lab.example.com/v1alpha1, lab.example.com/v1beta1" || !reflect.DeepEqual(got.Names, []string{"crdlab/one", "crdlab/one"}) ||
		got.Result != evidence.ConversionSuccess || got.Message != "" {
		t.Errorf("%+v", got)
	}
	if got.Request != body[:16<<10] || got.Response != answer[:16<<10] {
		t.Errorf("%d bytes of the request and %d of the response are kept", len(got.Request), len(got.Response))
	}
}

func FuzzHandler(f *testing.F) {
	f.Add("POST", Path, evidence.JSON, []byte(reviewOf(widget("v1alpha1", `,"spec":{"label":"x","color":1e400}`))))
	f.Add("POST", Path, evidence.JSON, []byte(reviewOf(widget("v1beta1", `,"spec":{"displayName":null}`), widget("v7", ""))))
	f.Add("POST", Path, evidence.JSON, []byte(strings.Replace(reviewOf(widget("v1beta1",
		`,"spec":{"displayName":["x"]}`)), "v1beta1\",\"obj", "v1alpha1\",\"obj", 1)))
	f.Add("POST", Path, evidence.JSON, []byte(strings.NewReplacer("lab.example.com/v1beta1", "lab.example.com/v1alpha1", `"a":"2"`,
		`"conversion.crdlab.dev/v1alpha1":"{\"spec.color\":[1]}"`).Replace(reviewOf(widget("v1beta1", "")))))
	f.Add("POST", Path, "application/json; charset=utf-8", []byte(reviewOf("null", "[]", `{"metadata":1}`)))
	f.Add("PUT", "/", "text/plain", []byte(strings.Repeat("[", 1100)))
	s := unserved(f)
	f.Fuzz(func(t *testing.T, method, path, contentType string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
		r.Method, r.URL.Path = method, path
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		s.handle(w, r)
		if w.Code != http.StatusOK {
			if w.Code < 400 || w.Code > 499 || strings.Count(w.Body.String(), "\n") != 1 {
				t.Fatalf("%d %q", w.Code, w.Body)
			}
			return
		}
		var asked struct {
			Request struct {
				UID     string            `json:"uid"`
				Objects []json.RawMessage `json:"objects"`
			} `json:"request"`
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Fatalf("200 for what is no JSON: %v", err)
		}
		got := answerOf(t, w)
		if string(got.UID) != asked.Request.UID {
			t.Errorf("uid %q, asked for %q", got.UID, asked.Request.UID)
		}
		want := len(asked.Request.Objects)
		if got.Result.Status != "Success" {
			if want = 0; got.Result.Message == "" {
				t.Error("it failed without a reason")
			}
		}
		if len(got.ConvertedObjects) != want {
			t.Errorf("%d objects, want %d", len(got.ConvertedObjects), want)
		}
	})
}
