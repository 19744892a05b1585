package conversion

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

func TestARotationHasNoGap(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "one", `{"label":"hello"}`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reading sync.WaitGroup
	var good atomic.Int64
	for range 4 {
		reading.Go(func() {
			for ctx.Err() == nil {
				got, err := f.Client.Unrecorded().Get(t.Context(), f.Path("v1beta1", "one"), nil)
				if err != nil || got.Status != http.StatusOK && !replaced(got) {
					t.Errorf("%v: %+v", err, got)
					return
				}
				good.Add(1)
			}
		})
	}
	first := f.webhook.CABundle()
	for range 3 {
		before := f.webhook.CABundle()
		var published int
		f.Must(f.webhook.Rotate(ctx, func(ctx context.Context) error {
			published++
			if both := trusts(t, f.webhook.CABundle(), before); both != (published == 1) {
				t.Errorf("the bundle published as number %d holds the old CA: %t", published, both)
			}
			_, err := f.webhook.Repoint(ctx, f.Client, f.Resource)
			return err
		}))
		if published != 2 {
			t.Errorf("published %d times", published)
		}
		since := good.Load()
		f.Until("reads went on", func() bool { return good.Load() > since+50 || t.Failed() })
	}
	stop()
	reading.Wait()
	if err := handshake(f.webhook, f.webhook.CABundle()); err != nil {
		t.Errorf("with the new CA: %v", err)
	}
	if trusts(t, f.webhook.CABundle(), first) {
		t.Error("the first CA is still in the bundle")
	}
}

func TestAClientThatKnowsTheEarlierCATrustsTheNewOne(t *testing.T) {
	f := newFixture(t)
	before := f.webhook.CABundle()
	f.Must(f.webhook.Rotate(t.Context(), func(context.Context) error { return nil }))
	if err := handshake(f.webhook, before); err != nil {
		t.Error(err)
	}
	other, err := newAuthority(nil)
	f.Must(err)
	if err := handshake(f.webhook, other.pem()); err == nil {
		t.Error("a client that knows another CA trusts it too")
	}
}

func TestARotationThatIsNotPublishedLeavesTheBundleRight(t *testing.T) {
	f := newFixture(t)
	before := f.webhook.CABundle()
	refused := errors.New("refused")
	for fail := 1; fail <= 2; fail++ {
		calls := 0
		err := f.webhook.Rotate(t.Context(), func(context.Context) error {
			if calls++; calls == fail {
				return refused
			}
			return nil
		})
		if !errors.Is(err, refused) || !trusts(t, f.webhook.CABundle(), before) {
			t.Errorf("publishing number %d fails: %v, or the bundle lacks the old CA", fail, err)
		}
		if err := handshake(f.webhook, f.webhook.CABundle()); err != nil {
			t.Error(err)
		}
	}
	f.fault("down")
	if err := f.webhook.Rotate(t.Context(), nil); err == nil || !holds(err.Error(), "switch the fault down off first") {
		t.Error(err)
	}
}

// trusts tells whether a bundle holds the certificates of another.
func trusts(t *testing.T, bundle, other []byte) bool {
	t.Helper()
	return holds(string(bundle), string(other))
}

// handshake begins a connection as a client that knows a bundle.
func handshake(s *Server, bundle []byte) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	c, err := tls.Dial("tcp", s.connections.Addr().String(), &tls.Config{RootCAs: pool, ServerName: s.names[0]})
	if err != nil {
		return err
	}
	return c.Close()
}
