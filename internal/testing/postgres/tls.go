package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// StartTLS starts a server with a certificate for 127.0.0.1 of an authority of its own, as managed servers have, and
// returns the file of that.
func StartTLS(t testing.TB) (s *Server, root string) {
	t.Helper()
	need(t)
	s = startWith(t, nil, (*Server).certify)
	return s, filepath.Join(s.dir, "root.pem")
}

// certify gives the server a certificate.
func (s *Server) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "jobhost tests"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"root.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
		if s.as == nil {
			continue
		}
		if err := os.Chown(path, int(s.as.Uid), int(s.as.Gid)); err != nil {
			return err
		}
	}
	s.options = append(s.options, "ssl=on", "ssl_cert_file="+filepath.Join(s.dir, "root.pem"), "ssl_key_file="+filepath.Join(s.dir, "key.pem"))
	return nil
}
