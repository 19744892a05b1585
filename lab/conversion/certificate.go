package conversion

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
)

// authorityName begins the common name of every CA that the lab makes. A CRD's caBundle tells by it whose webhook it is.
const authorityName = "crdlab conversion webhook CA "

// lifetime is how long certificates are valid: longer than any lab lasts.
const lifetime = 30 * 24 * time.Hour

// authority is a CA. Its key is in memory alone.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// cross is this CA's certificate as an earlier CA signed it. It goes with every serving certificate, so that a client
	// that still knows the earlier CA alone trusts the new one.
	cross []byte
}

// newAuthority makes a CA, vouched for by an earlier one where there is one.
func newAuthority(earlier *authority) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the webhook CA's key: %w", err)
	}
	template := template(authorityName + strings.ToLower(rand.Text()[:8]))
	template.IsCA = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the webhook's CA: %w", err)
	}
	a := &authority{key: key}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make the webhook's CA: %w", err)
	}
	if earlier != nil {
		template.SerialNumber = serial()
		if a.cross, err = x509.CreateCertificate(rand.Reader, template, earlier.certificate, &key.PublicKey, earlier.key); err != nil {
			return nil, fmt.Errorf("have the webhook's CA vouched for by the one before: %w", err)
		}
	}
	return a, nil
}

// issue makes a serving certificate.
func (a *authority) issue(names []string, change ...func(*x509.Certificate)) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the webhook's key: %w", err)
	}
	template := template("crdlab conversion webhook")
	template.DNSNames = names
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, c := range change {
		c(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make the webhook's certificate: %w", err)
	}
	chain := [][]byte{der}
	if a.cross != nil {
		chain = append(chain, a.cross)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key}, nil
}

func (a *authority) pem() []byte { return encodePEM(a.certificate.Raw) }

func encodePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{Organization: []string{cluster.Maker}, CommonName: name},
		NotBefore:             now.Add(-time.Hour), // the node's clock may be behind
		NotAfter:              now.Add(lifetime),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
	}
}

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails: it ends the process instead
	return new(big.Int).SetBytes(b)
}

// issuedHere tells whether a caBundle holds a CA that a lab made, in this process or another.
func issuedHere(bundle []byte) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && strings.HasPrefix(c.Subject.CommonName, authorityName) && slices.Contains(c.Subject.Organization, cluster.Maker) {
			return true
		}
	}
	return false
}
