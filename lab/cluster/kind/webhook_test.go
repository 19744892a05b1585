package kind_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
)

// converter renames the version of objects, notes where, and counts.
type converter struct{ reviews atomic.Int32 }

func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.reviews.Add(1)
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range review.Request.Objects {
		var object map[string]any
		_ = json.Unmarshal(o.Raw, &object) // the API server sent it
		object["convertedFrom"] = object["apiVersion"]
		object["apiVersion"] = review.Request.DesiredAPIVersion
		o.Raw, _ = json.Marshal(object)
		response.ConvertedObjects = append(response.ConvertedObjects, o)
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(w).Encode(review)
}

// serve converts behind a listener, and returns the certificate.
func (c *converter) serve(t *testing.T, l *cluster.WebhookListener) (certificate []byte) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(l.DNSNames[0], nil, l.DNSNames[1:])
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: c, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go server.ServeTLS(l, "", "")
	t.Cleanup(func() { server.Close() })
	return certificate
}

func TestTheAPIServerConvertsThroughThisProcess(t *testing.T) {
	s := newScene(t)
	s.create("v1", "one")
	l, err := s.cluster.ListenWebhook(t.Context())
	s.must(err)
	t.Logf("listening at %s", l.Addr())
	if l.Addr().String() == "" || l.DNSNames[0] != l.Service.Name+"."+l.Service.Namespace+".svc" || l.Service.Namespace != namespace {
		t.Errorf("%+v, %v", l.Service, l.DNSNames)
	}
	c := &converter{}
	certificate := c.serve(t, l)
	s.convertBy(l.Service, certificate)
	eventually(t, "a conversion by this process", func() bool {
		r := s.get("v2", "one")
		return r.Status == http.StatusOK && bytes.Contains(r.Body, []byte(`"convertedFrom":"`+s.resource.Group+`/v1"`))
	})
	if c.reviews.Load() == 0 {
		t.Error("no review came here")
	}

	// After a Reset of the namespace's contents and a Prepare, it is found again.
	scope := cluster.Scope{Resource: s.resource, Namespace: namespace}
	s.must(s.cluster.Reset(t.Context(), scope))
	s.must(s.cluster.Prepare(t.Context(), scope))
	client := clientFor(t, s.cluster)
	if _, err := client.CoreV1().Services(namespace).Get(t.Context(), l.Service.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	// The one that listens last is found, and the end of the first does not take that away.
	second, err := s.cluster.ListenWebhook(t.Context())
	s.must(err)
	s.must(l.Close())
	slices, err := client.DiscoveryV1().EndpointSlices(namespace).Get(t.Context(), l.Service.Name, metav1.GetOptions{})
	s.must(err)
	if got := fmt.Sprintf("%s:%d", slices.Endpoints[0].Addresses[0], *slices.Ports[0].Port); got != second.Addr().String() {
		t.Errorf("the Service leads to %s, want %s", got, second.Addr())
	}
	if slices.Labels[cluster.ManagedBy] != cluster.Maker {
		t.Errorf("labels %v", slices.Labels)
	}
	s.must(second.Close())
	if _, err := client.CoreV1().Services(namespace).Get(t.Context(), l.Service.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Service: %v, want NotFound", err)
	}
}

// convertBy has the CRD converted by a webhook.
func (s *scene) convertBy(service apiextensionsv1.ServiceReference, certificate []byte) {
	s.Helper()
	patch := fmt.Sprintf(`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
		`"clientConfig":{"service":{"namespace":%q,"name":%q,"port":%d},"caBundle":%q}}}}}`,
		service.Namespace, service.Name, *service.Port, base64.StdEncoding.EncodeToString(certificate))
	s.accepted(s.client.Patch(s.Context(), evidence.DefinitionPath(s.resource), evidence.MergePatch, "", []byte(patch)))
}
