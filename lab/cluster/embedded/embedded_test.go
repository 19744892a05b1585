package embedded

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/storage"
)

func TestKeysAreThoseOfAFullAPIServer(t *testing.T) {
	s := startServer(t)
	createCRD(t, s.Config(), widgetCRD("v1alpha1", "v1beta1"))
	createWidget(t, s.Config(), "v1beta1", "one")
	values, err := s.Storage()
	if err != nil {
		t.Fatal(err)
	}
	got, err := values.Get(t.Context(), widgets, Namespace, "one")
	if err != nil {
		t.Fatal(err)
	}
	if want := "/registry/lab.example.com/widgets/crdlab/one"; got.Key != want {
		t.Errorf("key %s, want %s", got.Key, want)
	}
	if got.Version() != "v1alpha1" {
		t.Errorf("stored at %s, want the storage version", got.Version())
	}
	read, err := dynamicClient(t, s.Config()).Resource(widgetsAt("v1beta1")).Namespace(Namespace).
		Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if read.GetAPIVersion() != "lab.example.com/v1beta1" {
		t.Errorf("read at v1beta1: %s", read.GetAPIVersion())
	}
}

func TestDiscoveryListsWhatIsServed(t *testing.T) {
	s := startServer(t)
	createCRD(t, s.Config(), widgetCRD("v1alpha1", "v1beta1"))
	client, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]discovery.DiscoveryInterface{"aggregated": client, "legacy": client.WithLegacy()} {
		eventually(t, name+" discovery of widgets and namespaces", func() bool {
			groups, lists, err := d.ServerGroupsAndResources()
			if err != nil {
				return false // the CRD's versions come in one after the other
			}
			var kinds []string
			for _, l := range lists {
				for _, r := range l.APIResources {
					kinds = append(kinds, l.GroupVersion+" "+r.Kind)
				}
			}
			preferred := ""
			for _, g := range groups {
				if g.Name == widgets.Group {
					preferred = g.PreferredVersion.Version
				}
			}
			return preferred == "v1beta1" && slices.Contains(kinds, "v1 Namespace") &&
				slices.Contains(kinds, "lab.example.com/v1alpha1 Widget") &&
				slices.Contains(kinds, "lab.example.com/v1beta1 Widget") &&
				slices.Contains(kinds, "apiextensions.k8s.io/v1 CustomResourceDefinition")
		})
	}
}

func TestVersionIsTheLinkedRelease(t *testing.T) {
	s := startServer(t)
	client, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := version.ParseSemantic(got.GitVersion) // as kubectl does
	if err != nil {
		t.Fatal(err)
	}
	// The go.mod of this module says which release it is: k8s.io/apiextensions-apiserver v0.MINOR.PATCH.
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "k8s.io/apiextensions-apiserver v0.")
	minor, _, _ := strings.Cut(rest, ".")
	if parsed.Major() != 1 || got.Minor != minor || got.Major != "1" {
		t.Errorf("%s (%s.%s), want 1.%s", got.GitVersion, got.Major, got.Minor, minor)
	}
	if s.Info().Version != strings.TrimPrefix(got.GitVersion, "v") {
		t.Errorf("Info says %s, /version %s", s.Info().Version, got.GitVersion)
	}
}

func TestNamespacesBehaveAsKubectlExpects(t *testing.T) {
	s := startServer(t)
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespaces, ctx := client.CoreV1().Namespaces(), t.Context()
	list, err := namespaces.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"crdlab", "default"}) {
		t.Errorf("at the start: %v", names)
	}
	made, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Status.Phase != corev1.NamespaceActive || made.Labels[corev1.LabelMetadataName] != "team" || made.UID == "" {
		t.Errorf("created: %+v", made)
	}
	force := true
	applied, err := namespaces.Patch(ctx, "team", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","labels":{"a":"b"}}}`),
		metav1.PatchOptions{FieldManager: "test", Force: &force})
	if err != nil || applied.Labels["a"] != "b" || len(applied.ManagedFields) == 0 {
		t.Errorf("applied: %v, %+v", err, applied)
	}
	if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "No Name"}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a bad name: %v, want Invalid", err)
	}
	if err := namespaces.Delete(ctx, "team", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := namespaces.Get(ctx, "team", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("deleted: %v, want NotFound", err)
	}
}

func TestAnObjectNeedsNoNamespaceThatExists(t *testing.T) {
	s := startServer(t)
	createCRD(t, s.Config(), widgetCRD("v1"))
	_, err := dynamicClient(t, s.Config()).Resource(widgetsAt("v1")).Namespace("nowhere").
		Create(t.Context(), widget("v1", "one"), metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestOpenAPIDescribesCustomResources(t *testing.T) {
	s := startServer(t)
	createCRD(t, s.Config(), widgetCRD("v1"))
	client, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "version 3 to describe widgets", func() bool {
		paths, err := client.OpenAPIV3().Paths()
		if err != nil {
			t.Fatal(err)
		}
		return paths["apis/lab.example.com/v1"] != nil && paths["api/v1"] != nil
	})
	eventually(t, "version 2 to describe widgets", func() bool {
		doc, err := client.OpenAPISchema()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range doc.GetDefinitions().GetAdditionalProperties() {
			if d.Name == "com.example.lab.v1.Widget" {
				return true
			}
		}
		return false
	})
}

func TestEstablishedIsSetBackSoThatTheFirstCreateDoesNotWait(t *testing.T) {
	s := startServer(t)
	before := time.Now()
	crd := createCRD(t, s.Config(), widgetCRD("v1"))
	at := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established).LastTransitionTime
	// The handler sleeps where this is less than 2 s ago; times have whole seconds.
	if age := before.Sub(at.Time); age < 2*time.Second {
		t.Errorf("established %s before its creation was asked for, want at least 2 s", age)
	}
	if crd.Generation != 1 {
		t.Errorf("generation %d, want 1", crd.Generation)
	}
	createWidget(t, s.Config(), "v1", "one")
}

func TestStrangersAreRefused(t *testing.T) {
	s := startServer(t)
	for name, change := range map[string]func(*rest.Config){
		"no token":      func(c *rest.Config) { c.BearerToken = "" },
		"a wrong token": func(c *rest.Config) { c.BearerToken = "guess" },
	} {
		config := s.Config()
		change(config)
		for _, path := range []string{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", requestsPath, servicesPath} {
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Get(config.Host + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s, %s: %s, want 401", name, path, response.Status)
			}
		}
	}
}

func TestConfigDoesNotRetryABrokenConnection(t *testing.T) {
	var asked atomic.Int32
	rude := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer rude.Close()
	a := access{endpoint: rude.URL}
	config := a.Config()
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	_, err := crdClient(t, config).ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, cluster.ErrBroken) || asked.Load() != 1 {
		t.Errorf("asked %d times, error %v; want one, %v", asked.Load(), err, cluster.ErrBroken)
	}
}

func TestConfigDoesNotRetryABusyServer(t *testing.T) {
	var asked atomic.Int32
	busy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer busy.Close()
	a := access{endpoint: busy.URL}
	config := a.Config()
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	_, err := crdClient(t, config).ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsTooManyRequests(err) || asked.Load() != 1 {
		t.Errorf("asked %d times, error %v; want one, 429", asked.Load(), err)
	}
}

func TestTwentyServersAtOnceAreIsolated(t *testing.T) {
	const n = 20
	servers := make([]*Server, n)
	var starting sync.WaitGroup
	state := t.TempDir()
	for i := range servers {
		starting.Go(func() {
			s, err := Start(context.Background(), Options{StateDir: state})
			if err != nil {
				t.Error(err)
				return
			}
			servers[i] = s
		})
	}
	starting.Wait()
	for _, s := range servers {
		if s == nil {
			t.FailNow()
		}
		defer s.Close(context.Background())
	}
	for i, s := range servers {
		if i%2 == 0 {
			createCRD(t, s.Config(), widgetCRD("v1"))
		}
	}
	for i, s := range servers {
		_, err := crdClient(t, s.Config()).ApiextensionsV1().CustomResourceDefinitions().
			Get(t.Context(), widgets.String(), metav1.GetOptions{})
		if has := err == nil; has != (i%2 == 0) {
			t.Errorf("server %d: has the CRD: %v (%v)", i, has, err)
		}
	}
}

func TestResetKeepsPortTokenAndCertificateAndForgetsTheRest(t *testing.T) {
	s := startServer(t)
	config := s.Config() // the client of before goes on
	createCRD(t, config, widgetCRD("v1"))
	createWidget(t, config, "v1", "one")
	values, err := s.Storage()
	if err != nil {
		t.Fatal(err)
	}
	revision, err := values.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes := values.Watch(t.Context(), widgets, revision)
	if err := s.Reset(t.Context(), wholeScope); err != nil {
		t.Fatal(err)
	}
	var last storage.Batch
	for last = range changes {
	}
	if last.Err == nil {
		t.Errorf("a watch of before the reset ends with %+v, want an error", last)
	}
	_, err = crdClient(t, config).ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), widgets.String(), metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the CRD after the reset: %v, want NotFound", err)
	}
	fresh, err := s.Storage()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Get(t.Context(), widgets, Namespace, "one"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the stored value after the reset: %v, want ErrNotFound", err)
	}
	createCRD(t, config, widgetCRD("v1"))
	createWidget(t, config, "v1", "one")
}

func TestNobodyIsRefusedDuringAReset(t *testing.T) {
	s := startServer(t)
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	var answered atomic.Int32
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				config := s.Config()
				config.Dial = new(net.Dialer).DialContext // its own connection every time
				client, err := rest.HTTPClientFor(config)
				if err != nil {
					t.Error(err)
					return
				}
				// A server that has not read its CRDs yet does not know whether this is there, and says 503.
				response, err := client.Get(s.Config().Host + "/apis/lab.example.com/v1/widgets")
				switch {
				case err == nil:
					response.Body.Close()
					if response.StatusCode != http.StatusNotFound {
						t.Errorf("during a reset: %s, want 404", response.Status)
					}
					answered.Add(1)
				case errors.Is(err, syscall.ECONNREFUSED):
					t.Errorf("during a reset: %v", err)
				}
				client.CloseIdleConnections()
			}
		})
	}
	for range 3 {
		was := answered.Load()
		if err := s.Reset(t.Context(), wholeScope); err != nil {
			t.Error(err)
		}
		eventually(t, "an answer after the reset", func() bool { return answered.Load() > was })
	}
	stop()
	asking.Wait()
}

func TestAFreshServerMayTakeTheKnownPortTokenAndCertificate(t *testing.T) {
	first := startServer(t)
	port, config := first.options.Listener.Addr().(*net.TCPAddr).Port, first.Config()
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	startServer(t, func(o *Options) {
		o.Port, o.Token, o.Certificate = port, first.options.Token, first.options.Certificate
	})
	_, err := crdClient(t, config).ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothingBehindAndDoesNotWaitForWatches(t *testing.T) {
	s := startServer(t)
	watch, err := crdClient(t, s.Config()).ApiextensionsV1().CustomResourceDefinitions().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	requests, err := s.WatchRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values, err := s.Storage()
	if err != nil {
		t.Fatal(err)
	}
	revision, err := values.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes := values.Watch(t.Context(), widgets, revision)
	hook, err := s.ListenWebhook(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("it waits for somebody")
	}
	for range watch.ResultChan() {
	}
	for range requests {
	}
	for range changes {
	}
	if _, err := hook.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the webhook's listener: %v, want closed", err)
	}
	for _, path := range []string{s.folder.path, s.session.path} {
		if exists(path) {
			t.Errorf("%s is left", path)
		}
	}
	if _, err := net.Dial("tcp", s.options.Listener.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after Close: %v, want refused", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if err := s.Reset(t.Context(), wholeScope); err == nil {
		t.Error("a closed server can be reset")
	}
}

func TestStartSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		is     error
		says   string
	}{
		"port taken":         {func(o *Options) { o.Port = taken.Addr().(*net.TCPAddr).Port }, syscall.EADDRINUSE, "choose another"},
		"no such port":       {func(o *Options) { o.Port = 70000 }, nil, "65535"},
		"no temp folder":     {func(o *Options) { o.Dir = filepath.Join(file, "tmp") }, syscall.ENOTDIR, "TMPDIR"},
		"no state folder":    {func(o *Options) { o.StateDir = filepath.Join(file, "state") }, syscall.ENOTDIR, "XDG_STATE_HOME"},
		"broken certificate": {func(o *Options) { o.Certificate = &Certificate{CertPEM: []byte("x"), KeyPEM: []byte("y")} }, nil, "certificate"},
	} {
		dir := t.TempDir()
		o := Options{Dir: shortDir(t), StateDir: dir}
		c.change(&o)
		s, err := Start(t.Context(), o)
		if err == nil {
			s.Close(t.Context())
			t.Errorf("%s: started", name)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v, %q", name, err, c.is, c.says)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestPhasesAreReportedInOrder(t *testing.T) {
	var got []string
	startServer(t, func(o *Options) {
		o.OnPhase = func(p Phase) {
			text := p.Name
			if p.Done {
				text += " done"
				if p.Took <= 0 {
					t.Errorf("%s took %s", p.Name, p.Took)
				}
			}
			got = append(got, text)
		}
	})
	want := []string{
		PhaseEtcd, PhaseEtcd + " done", PhaseAPIServer, PhaseAPIServer + " done", PhaseCRDs, PhaseCRDs + " done",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAWebhookIsFoundAsItsServiceAndByItsName(t *testing.T) {
	s := startServer(t)
	listener, err := s.ListenWebhook(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 100)
	hook := serveConversion(t, listener, listener.DNSNames, asked)
	createCRD(t, s.Config(), webhookCRD(listener.Service, hook))
	createWidget(t, s.Config(), "v1alpha1", "one")
	objects := dynamicClient(t, s.Config()).Resource(widgetsAt("v1beta1")).Namespace(Namespace)
	if _, err := objects.Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if name := <-asked; name != "crdlab-webhook.crdlab.svc" {
		t.Errorf("asked for the certificate of %q", name)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, err := objects.Get(t.Context(), "one", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "nobody serves it") {
		t.Errorf("after the webhook ended: %v", err)
	}
}

// webhookCRD converts through a Service whose certificate is its own CA.
func webhookCRD(service apiextensionsv1.ServiceReference, ca *Certificate) *apiextensionsv1.CustomResourceDefinition {
	crd := widgetCRD("v1alpha1", "v1beta1")
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &service, CABundle: ca.CertPEM},
		},
	}
	return crd
}

// serveConversion answers ConversionReviews by changing the apiVersion, and sends the server names that were asked for.
func serveConversion(t *testing.T, l net.Listener, names []string, asked chan<- string) *Certificate {
	t.Helper()
	cert := certificateFor(t, names)
	pair, err := tls.X509KeyPair(cert.CertPEM, cert.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(convert), TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{pair},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked <- hello.ServerName
			return nil, nil
		},
	}}
	go server.ServeTLS(l, "", "")
	t.Cleanup(func() { server.Close() })
	return cert
}

func convert(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range review.Request.Objects {
		from := []byte(`"apiVersion":"lab.example.com/v1alpha1"`)
		o.Raw = bytes.Replace(o.Raw, from, []byte(`"apiVersion":"`+review.Request.DesiredAPIVersion+`"`), 1)
		response.ConvertedObjects = append(response.ConvertedObjects, o)
	}
	review.Request, review.Response = nil, response
	json.NewEncoder(w).Encode(review)
}

// certificateFor is the server's own certificate with other names in it.
func certificateFor(t *testing.T, names []string) *Certificate {
	t.Helper()
	c, err := newCertificate(func(template *x509.Certificate) { template.DNSNames = names })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLogGetsWhatTheLibrariesSay(t *testing.T) {
	var log syncBuffer
	s := startServer(t, func(o *Options) { o.Log = &log })
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Serving securely on", "it isn't recommended to use default name"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

// syncBuffer may be written by many.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = &syncBuffer{}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
