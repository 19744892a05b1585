package conversion

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
)

func TestTheServerConvertsBothWaysAndKeepsTheResourceVersion(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "old", `{"label":"hello","replicas":3,"color":"red"}`)
	f.Create("v1beta1", "new", `{"displayName":"hi","replicas":4}`)
	for _, want := range []struct{ version, name, path, value, lacks string }{
		{"v1alpha1", "old", "label", "hello", "displayName"},
		{"v1beta1", "old", "displayName", "hello", "label"},
		{"v1alpha1", "new", "label", "hi", "displayName"},
		{"v1beta1", "new", "displayName", "hi", "label"},
	} {
		o := f.object(want.version, want.name)
		if got := field(o, "spec", want.path); got != want.value {
			t.Errorf("%s at %s: spec.%s is %s, want %s", want.name, want.version, want.path, got, want.value)
		}
		if got := field(o, "spec", want.lacks); got != "-" {
			t.Errorf("%s at %s: spec.%s is %s", want.name, want.version, want.lacks, got)
		}
	}
	for _, name := range []string{"old", "new"} {
		a, b := f.object("v1alpha1", name), f.object("v1beta1", name)
		if x, y := field(a, "metadata", "resourceVersion"), field(b, "metadata", "resourceVersion"); x != y || x == "-" {
			t.Errorf("%s: resourceVersion %s at v1alpha1, %s at v1beta1", name, x, y)
		}
	}
	if f.Get("v1alpha1", "old").Status != http.StatusOK {
		t.Error("the stored version cannot be read")
	}
}

// direct is a client that calls the webhook as the API server does.
func (f *fixture) direct() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(f.webhook.CABundle())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: f.webhook.names[0]}}
	f.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// review is a request for the conversion of one widget of the fixture's group.
func (f *fixture) review(ctx context.Context) *http.Request {
	f.Helper()
	body := strings.ReplaceAll(reviewOf(widget("v1alpha1", `,"spec":{"label":"x"}`)), testGroup, f.Resource.Group)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+f.webhook.connections.Addr().String()+Path, strings.NewReader(body))
	f.Must(err)
	r.Header.Set("Content-Type", evidence.JSON)
	return r
}

func TestAnAnswerThatHangsEndsWhenTheClientGoesAway(t *testing.T) {
	f := newFixture(t)
	f.fault("hang")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		resp, err := f.direct().Do(f.review(ctx))
		if err == nil {
			resp.Body.Close()
		}
		left <- err
	}()
	f.Until("the webhook waits", func() bool { return f.webhook.Waiting() > 0 })
	grown := f.webhook.Log().Grown()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-grown
	log := f.webhook.Log().Since(f.webhook.Log().Seq() - 1)
	if c := log[0]; c.Result != "no answer" || c.Message != errGone.Error() || c.UID != "u-1" {
		t.Errorf("in the log: %+v", c)
	}
	if n := f.webhook.Waiting(); n != 0 {
		t.Errorf("%d answers are still waited for", n)
	}
}

func TestAConnectionIsKeptUntilTheCertificateIsAnother(t *testing.T) {
	f := newFixture(t)
	client := f.direct()
	ask := func() (closes bool) {
		t.Helper()
		resp, err := client.Do(f.review(t.Context()))
		f.Must(err)
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s, %v", resp.Status, err)
		}
		return resp.Close
	}
	if ask() {
		t.Error("a connection ends with its first answer")
	}
	f.Must(f.webhook.Rotate(t.Context(), func(context.Context) error { return nil }))
	if !ask() {
		t.Error("a connection that was made under the certificate before goes on")
	}
}

func TestTheEndOfTheContextClosesTheWebhook(t *testing.T) {
	f := newFixture(t)
	listener, err := f.Server.ListenWebhook(t.Context())
	f.Must(err)
	ctx, end := context.WithCancel(t.Context())
	s, err := Serve(ctx, listener, Options{Groups: []string{f.Resource.Group}})
	f.Must(err)
	f.Must(handshake(s, s.CABundle()))
	end()
	<-s.served
	f.Must(s.Close())
	if err := handshake(s, s.CABundle()); err == nil {
		t.Error("it still answers")
	}
}
