package embedded

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/cluster"
)

// watchRequests subscribes for the length of the test.
func watchRequests(t *testing.T, c cluster.RequestWatcher) <-chan cluster.Request {
	t.Helper()
	requests, err := c.WatchRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

// next is the next request that is seen.
func next(t *testing.T, requests <-chan cluster.Request) cluster.Request {
	t.Helper()
	select {
	case r, open := <-requests:
		if !open {
			t.Fatal("the stream has ended")
		}
		return r
	case <-time.After(10 * time.Second):
		t.Fatal("no request is seen")
	}
	panic("unreachable")
}

// send sends a request by hand and returns its answer's status.
func send(t *testing.T, config *rest.Config, method, path, contentType, body string) int {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "by hand")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestRequestsOfOthersAreRecordedWhole(t *testing.T) {
	s := startServer(t)
	warning := "v1alpha1 is going away, use v1beta1"
	crd := widgetCRD("v1alpha1", "v1beta1")
	crd.Spec.Versions[0].Deprecated, crd.Spec.Versions[0].DeprecationWarning = true, &warning
	createCRD(t, s.Config(), crd)
	requests := watchRequests(t, s)
	hand := handConfig(t, s.kubeconfig)

	const path = "/apis/lab.example.com/v1alpha1/namespaces/crdlab/widgets?fieldValidation=Strict"
	const body = `{"apiVersion":"lab.example.com/v1alpha1","kind":"Widget","metadata":{"name":"one"}}`
	before := time.Now()
	if status := send(t, hand, http.MethodPost, path, "application/json", body); status != http.StatusCreated {
		t.Fatalf("create: %d", status)
	}
	got := next(t, requests)
	if got.Method != http.MethodPost || got.Path != path || got.ContentType != "application/json" ||
		got.UserAgent != "by hand" || string(got.Body) != body || got.Status != http.StatusCreated {
		t.Errorf("the request: %+v, body %s", got, got.Body)
	}
	if len(got.Warnings) != 1 || got.Warnings[0] != warning {
		t.Errorf("warnings %q, want %q", got.Warnings, warning)
	}
	var created metav1.PartialObjectMetadata
	if err := json.Unmarshal(got.Response, &created); err != nil || created.UID == "" {
		t.Errorf("the response: %v: %s", err, got.Response)
	}
	if got.At.Before(before) || got.Duration <= 0 {
		t.Errorf("at %s for %s, but it was sent after %s", got.At, got.Duration, before)
	}

	// A refusal, with the server's reason.
	send(t, hand, http.MethodPost, path, "application/json", body)
	if got = next(t, requests); got.Status != http.StatusConflict || !strings.Contains(string(got.Response), "AlreadyExists") {
		t.Errorf("a refusal: %d %s", got.Status, got.Response)
	}
}

func TestRequestsOfTheLabAndOfTheServerAreNotRecorded(t *testing.T) {
	s := startServer(t)
	requests := watchRequests(t, s)
	createCRD(t, s.Config(), widgetCRD("v1")) // makes the server's own controllers write, too
	createWidget(t, s.Config(), "v1", "one")
	marked := handConfig(t, s.kubeconfig)
	marked.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set(cluster.ActorHeader, "step")
			return rt.RoundTrip(r)
		})
	})
	if status := send(t, marked, http.MethodGet, "/apis/lab.example.com/v1/widgets?limit=1", "", ""); status != http.StatusOK {
		t.Errorf("list: %d", status)
	}
	expectOnlySentinel(t, s, requests)
}

func TestRequestsByWhichClientsFindTheirWayAreNotRecorded(t *testing.T) {
	s := startServer(t)
	requests := watchRequests(t, s)
	hand := handConfig(t, s.kubeconfig)
	client, err := discovery.NewDiscoveryClientForConfig(hand)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []discovery.DiscoveryInterface{client, client.WithLegacy()} {
		if _, _, err := d.ServerGroupsAndResources(); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.OpenAPISchema(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{
		"/version", "/readyz", "/livez?verbose", "/healthz", "/openapi/v3", "/api/v1/namespaces", "/api/v1/namespaces/crdlab",
	} {
		if status := send(t, hand, http.MethodGet, path, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	expectOnlySentinel(t, s, requests)
}

// expectOnlySentinel sends a request that is recorded, and fails if another one was recorded before it.
func expectOnlySentinel(t *testing.T, s *Server, requests <-chan cluster.Request) {
	t.Helper()
	const path = "/apis/sentinel.example.com/v1/none/one"
	send(t, handConfig(t, s.kubeconfig), http.MethodGet, path, "", "")
	if got := next(t, requests); got.Path != path || got.Status != http.StatusNotFound {
		t.Errorf("recorded: %d %s %s", got.Status, got.Method, got.Path)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAWatchIsRecordedWhenItBegins(t *testing.T) {
	s := startServer(t)
	requests := watchRequests(t, s)
	hand := crdClient(t, handConfig(t, s.kubeconfig)).ApiextensionsV1().CustomResourceDefinitions()
	watch, err := hand.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	got := next(t, requests)
	if !strings.Contains(got.Path, "watch=true") || got.Status != http.StatusOK || len(got.Response) > 0 {
		t.Errorf("%+v", got)
	}
	createCRD(t, s.Config(), widgetCRD("v1"))
	if event := <-watch.ResultChan(); event.Object.(*apiextensionsv1.CustomResourceDefinition).Name != widgets.String() {
		t.Errorf("what the watch delivers: %+v", event)
	}
}

func TestBodiesAreCutAndLongAnswersUncompressed(t *testing.T) {
	s := startServer(t)
	createCRD(t, s.Config(), widgetCRD("v1"))
	requests := watchRequests(t, s)
	hand := handConfig(t, s.kubeconfig)
	long := widget("v1", "long")
	long.Object["spec"] = map[string]any{"text": strings.Repeat("0123456789", 20<<10)} // beyond what is sent uncompressed
	objects := dynamicClient(t, hand).Resource(widgetsAt("v1")).Namespace(Namespace)
	if _, err := objects.Create(t.Context(), long, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := next(t, requests)
	if len(got.Body) != cluster.MaxRecordedBody || len(got.Response) != cluster.MaxRecordedBody {
		t.Errorf("body of %d bytes, response of %d, want %d", len(got.Body), len(got.Response), cluster.MaxRecordedBody)
	}
	for _, text := range [][]byte{got.Body, got.Response} {
		if !strings.Contains(string(text), `"kind":"Widget"`) && !strings.Contains(string(text), "0123456789") {
			t.Errorf("not the text: %.60q", text)
		}
	}
	merge := `{"spec":{"text":"short"}}`
	if _, err := objects.Patch(t.Context(), "long", types.MergePatchType, []byte(merge), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := next(t, requests); string(got.Body) != merge || got.ContentType != string(types.MergePatchType) {
		t.Errorf("the patch: %s %s", got.ContentType, got.Body)
	}
}

func TestASlowSubscriberHoldsNobodyUp(t *testing.T) {
	r := newRecorder()
	slow := r.subscribe()
	for range backlog + 10 {
		r.publish(cluster.Request{})
	}
	if len(slow) != backlog {
		t.Errorf("%d wait, want %d", len(slow), backlog)
	}
	r.unsubscribe(slow)
	if r.subscribed() {
		t.Error("it is still subscribed")
	}
}

func TestTheStreamOfRequestsGoesOnAfterAResetAndEndsWithItsContext(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	requests, err := s.WatchRequests(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(t.Context(), wholeScope); err != nil {
		t.Fatal(err)
	}
	hand := handConfig(t, s.kubeconfig)
	eventually(t, "a request after the reset to be seen", func() bool {
		send(t, hand, http.MethodGet, "/apis/lab.example.com/v1/widgets/one", "", "")
		select {
		case <-requests:
			return true
		default:
			return false
		}
	})
	cancel()
	for range requests {
	}
}
