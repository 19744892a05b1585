package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certificate is what the API server shows to its clients. It is its own authority: clients trust CertPEM itself.
type Certificate struct {
	CertPEM []byte `json:"cert"`
	KeyPEM  []byte `json:"key"`
}

// NewCertificate makes a certificate for the loopback addresses, valid for a year. It is an ECDSA one, because making an
// RSA key would take half of the server's start.
func NewCertificate() (*Certificate, error) { return newCertificate(func(*x509.Certificate) {}) }

func newCertificate(change func(template *x509.Certificate)) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the API server's key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "crdlab"},
		NotBefore:             now.Add(-time.Hour), // a clock that is put right in between must not break it
		NotAfter:              now.AddDate(1, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:              []string{"localhost"},
	}
	change(template)
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the API server's certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the API server's key: %w", err)
	}
	return &Certificate{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// newToken makes a bearer token that cannot be guessed.
func newToken() string {
	b := make([]byte, 24)
	rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}
