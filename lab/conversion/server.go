// Package conversion is the conversion webhook that the lab serves: certificates, mappings between versions, a log of
// reviews, and faults that can be switched on while it runs.
package conversion

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
)

// Path is where the webhook answers.
const Path = "/convert"

// The bounds on what clients may do. The API server itself waits 30 seconds for an answer.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	maxBodyBytes      = 10 << 20
	// closeTimeout is how long Close waits for answers that are being written.
	closeTimeout = 2 * time.Second
)

// Options say what a Server converts.
type Options struct {
	Groups   []string // the API groups whose objects it converts
	Mappings []Mapping
	Log      *evidence.ConversionLog // nil: one of its own
}

// Server is a conversion webhook. It is safe for concurrent use.
type Server struct {
	groups      []string
	log         *evidence.ConversionLog
	service     apiextensionsv1.ServiceReference
	names       []string // that the certificate is for
	connections *connections
	http        *http.Server
	served      chan struct{} // closed when the server accepts no more
	life        context.Context
	endLife     context.CancelCauseFunc
	waiting     atomic.Int32 // answers that a fault holds back
	closing     sync.Once
	closed      error

	switching sync.Mutex // one change of the fault or the certificate at a time

	mu       sync.Mutex
	mappings mappings
	ca       *authority
	bundle   []byte           // what the CRD is to trust, PEM
	healthy  *tls.Certificate // shown where no fault shows another
	shown    *tls.Certificate
	fault    behaviour
	changed  chan struct{} // closed when the fault is another
}

// Serve answers the API server's ConversionReviews until Close is called or the context ends. It owns the listener. All
// keys are made now, and are in memory alone.
func Serve(ctx context.Context, l *cluster.WebhookListener, o Options) (*Server, error) {
	s, err := newServer(l.Service, l.DNSNames, o)
	if err != nil {
		return nil, fmt.Errorf("start the conversion webhook: %w", errors.Join(err, l.Close()))
	}
	s.connections = newConnections(l.Listener)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // handshakes that failed: the client tells
		BaseContext:       func(net.Listener) context.Context { return s.life },
		ConnContext:       rememberConnection,
	}
	s.life, s.endLife = context.WithCancelCause(context.WithoutCancel(ctx))
	encrypted := tls.NewListener(s.connections, &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true, // a resumed session would not see another certificate
		GetCertificate:         s.certificate,
	})
	go func() { // ends when Close closes the listener
		defer close(s.served)
		_ = s.http.Serve(encrypted)
	}()
	// The caller's context may live on for long: once closed, it is to forget this server.
	unbind := context.AfterFunc(ctx, func() { _ = s.Close() })
	context.AfterFunc(s.life, func() { unbind() })
	return s, nil
}

// newServer makes a Server that does not listen yet.
func newServer(service apiextensionsv1.ServiceReference, names []string, o Options) (*Server, error) {
	if len(o.Groups) == 0 || slices.Contains(o.Groups, "") {
		return nil, errors.New("it needs the API groups whose objects it converts")
	}
	s := &Server{groups: o.Groups, log: o.Log, service: *service.DeepCopy(), names: names,
		served: make(chan struct{}), changed: make(chan struct{})}
	path, port := Path, int32(443) // what a reference without a port means
	s.service.Path = &path
	if s.service.Port == nil {
		s.service.Port = &port
	}
	if s.log == nil {
		s.log = evidence.NewConversionLog()
	}
	err := s.Deploy(o.Mappings)
	if err != nil {
		return nil, err
	}
	if s.ca, err = newAuthority(nil); err != nil {
		return nil, err
	}
	if s.healthy, err = s.ca.issue(names); err != nil {
		return nil, err
	}
	s.shown, s.bundle = s.healthy, s.ca.pem()
	return s, nil
}

// Close ends the webhook: answers that hang are broken off, and connections are ended. A CRD that points here must be put
// right before: see Detach.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.connections.shutOff(true)
		s.endLife(errClosing)
		s.connections.end()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			s.closed = fmt.Errorf("close the conversion webhook: %w", errors.Join(err, s.http.Close()))
		}
		<-s.served
	})
	return s.closed
}

// Log is the list of the reviews that were answered.
func (s *Server) Log() *evidence.ConversionLog { return s.log }

// CABundle is what a CRD has to trust, in PEM; during a rotation it holds two CAs.
func (s *Server) CABundle() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bundle)
}

// ClientConfig is how a CRD has to refer to this webhook: with the fault that is in the reference, if one is switched on.
func (s *Server) ClientConfig() *apiextensionsv1.WebhookClientConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	service := s.service.DeepCopy()
	if s.fault.reference != nil {
		s.fault.reference(service)
	}
	return &apiextensionsv1.WebhookClientConfig{Service: service, CABundle: slices.Clone(s.bundle)}
}

// Conversion is the spec.conversion of a CRD that this webhook converts.
func (s *Server) Conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             s.ClientConfig(),
			ConversionReviewVersions: []string{apiextensionsv1.SchemeGroupVersion.Version},
		},
	}
}

// Deploy has the webhook convert by other mappings, as its next release would: every review that is answered from now on is
// answered by them. What the API server has in its cache was converted by those before.
func (s *Server) Deploy(all []Mapping) error {
	compiled, err := compile(all)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mappings = compiled
	return nil
}

// deployed are the mappings by which reviews are answered now.
func (s *Server) deployed() mappings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mappings
}

// Fault is the one that is switched on; the zero Fault where all is well.
func (s *Server) Fault() Fault { return s.now().Fault }

// Waiting is how many answers a fault holds back.
func (s *Server) Waiting() int { return int(s.waiting.Load()) }

// SetFault switches a fault on, in place of the one before; the zero Fault heals. When it returns, the next request meets
// the new state: connections that began otherwise have ended, and answers that hung go on. A fault that ChangesCRD, and the
// healing of one, wants a Repoint as well.
func (s *Server) SetFault(f Fault) error {
	b, err := behaviourOf(f)
	if err != nil {
		return err
	}
	s.switching.Lock()
	defer s.switching.Unlock()
	show := s.healthy
	if b.certificate != nil {
		if show, err = b.certificate(s.ca, s.names); err != nil {
			return fmt.Errorf("switch the fault %s on: %w", b.ID, err)
		}
	}
	s.mu.Lock()
	was := s.fault
	s.fault, s.shown = b, show
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.connections.shutOff(b.cutsAll)
	if was.handshake() || b.handshake() {
		s.connections.end()
	}
	return nil
}

// now is the fault of this moment.
func (s *Server) now() behaviour {
	b, _ := s.watch()
	return b
}

// watch is the fault of this moment, and a channel that is closed when it is another.
func (s *Server) watch() (behaviour, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault, s.changed
}

// certificate is what a handshake shows.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := hello.Conn.(*connection); ok {
		c.shown = s.shown
	}
	return s.shown, nil
}

// outdated says that a connection began with a certificate that is no longer shown.
func (s *Server) outdated(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.shown != s.shown
}
