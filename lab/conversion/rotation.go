package conversion

import (
	"context"
	"fmt"
	"slices"
)

// Rotate replaces the CA and the certificate without a gap: first CABundle holds both CAs and is published, then the new
// certificate is shown, then CABundle holds the new CA alone and is published. To publish is to give the CRD the new
// CABundle, such as Repoint does. An API server takes a while to take that up; until then it trusts the new CA because
// the one before vouches for it. Connections that are open go on, and end with their next answer.
//
// After an error CABundle is right for what is shown, and the rotation can be tried again.
func (s *Server) Rotate(ctx context.Context, publish func(context.Context) error) error {
	s.switching.Lock()
	defer s.switching.Unlock()
	if f := s.now(); f.handshake() {
		return fmt.Errorf("rotate the webhook's certificate: switch the fault %s off first", f.ID)
	}
	next, err := newAuthority(s.ca)
	if err != nil {
		return err
	}
	certificate, err := next.issue(s.names)
	if err != nil {
		return err
	}
	before := s.CABundle()
	s.trust(slices.Concat(before, next.pem()))
	if err := publish(ctx); err != nil {
		s.trust(before)
		return fmt.Errorf("publish the new CA beside the old one: %w", err)
	}
	s.mu.Lock()
	s.ca, s.healthy, s.shown = next, certificate, certificate
	s.mu.Unlock()
	both := s.CABundle()
	s.trust(next.pem())
	if err := publish(ctx); err != nil {
		s.trust(both)
		return fmt.Errorf("publish the new CA alone: %w", err)
	}
	return nil
}

func (s *Server) trust(bundle []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bundle = bundle
}
