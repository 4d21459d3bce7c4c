package cluster

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// identity is the key that this host shows to others, in a certificate that only TLS needs. Each process makes a new one and
// puts its public half into the table of hosts, so the right to write there decides which hosts belong to the cluster.
type identity struct {
	public      ed25519.PublicKey
	certificate tls.Certificate
}

func newIdentity(name string) (*identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<35, 0), // it is valid while it is in the table
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &identity{public, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// config returns TLS settings that require a key of the other side which verify accepts.
func (i *identity) config(verify func(key ed25519.PublicKey) error) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{i.certificate},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, //nolint:gosec // there are no authorities: VerifyConnection compares the key
		SessionTicketsDisabled: true,
		NextProtos:             []string{"h2"},
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errStranger
			}
			key, _ := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			return verify(key)
		},
	}
}

var errStranger = errors.New("the key of the peer is not that of a host of this cluster")

// Times of a keyring.
const (
	keyTime = 2 * time.Second        // timeout of reading the table
	missGap = 100 * time.Millisecond // between two reads for unknown keys, so that strangers can't cause many
)

// keyring caches the keys in the table of hosts. It reads the table again for keys that it doesn't know.
type keyring struct {
	ask func(context.Context) ([]pgdb.Host, error)

	asking sync.Mutex // held while the table is read: others wait for the result
	asked  time.Time  // when the last read began; protected by asking

	mu    sync.Mutex        // protects the rest
	names map[string]string // by key
	read  time.Time         // when the read that found names began
}

// learn replaces the keys by those of the hosts that a read found which began at a time. It ignores reads that began before
// the one that is known, which may lack hosts that have joined since.
func (k *keyring) learn(hosts []pgdb.Host, began time.Time) {
	names := make(map[string]string, len(hosts))
	for i := range hosts {
		names[string(hosts[i].Key)] = hosts[i].Name
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !began.Before(k.read) {
		k.names, k.read = names, began
	}
}

func (k *keyring) known(key ed25519.PublicKey) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[string(key)]
}

// owner returns the name of the host with a key; empty = there is none. A host is in the table before it connects, so one read
// is enough for all connections that came before it.
func (k *keyring) owner(key ed25519.PublicKey) string {
	if name := k.known(key); name != "" {
		return name
	}
	came := time.Now()
	k.asking.Lock()
	defer k.asking.Unlock()
	if name := k.known(key); name != "" || k.asked.After(came) {
		return name
	}
	time.Sleep(missGap - time.Since(k.asked)) // at most missGap; the others wait for the same read
	k.asked = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	if hosts, err := k.ask(ctx); err == nil {
		k.learn(hosts, k.asked)
	}
	return k.known(key)
}

// anyHost accepts every host of the cluster.
func (k *keyring) anyHost(key ed25519.PublicKey) error {
	if k.owner(key) == "" {
		return errStranger
	}
	return nil
}

// host accepts the host of a name.
func (k *keyring) host(name string) func(ed25519.PublicKey) error {
	return func(key ed25519.PublicKey) error {
		if k.owner(key) != name {
			return errStranger
		}
		return nil
	}
}
