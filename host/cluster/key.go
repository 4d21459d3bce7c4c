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

// identity is the key that this host shows to others, in a certificate that nothing but TLS asks for. It lives as long
// as the process: its public half stands in the table of hosts, so the right to write there decides who is a host.
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
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<35, 0), // the table says how long it is good
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &identity{public, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// config returns TLS settings that ask the other side for a key that verify accepts.
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
	keyTime = 2 * time.Second        // in which the table has to answer
	missGap = 100 * time.Millisecond // between two questions that strangers make it ask
)

// keyring knows the keys in the table of hosts. It asks the table for those that it doesn't know.
type keyring struct {
	ask func(context.Context) ([]pgdb.Host, error)

	asking sync.Mutex // held while the table is asked: others wait for the answer
	asked  time.Time  // when that began last; protected by asking

	mu    sync.Mutex        // protects the rest
	names map[string]string // by key
	read  time.Time         // when the reading of names began
}

// learn takes in all hosts that there are, as a reading that began at a time has found them. One that began earlier than
// what is known may lack a host that has come since.
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

// owner returns the name of the host with a key; empty = there is none. A host is in the table before it connects, so an
// answer decides about all who came before the question.
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
	time.Sleep(missGap - time.Since(k.asked)) // at most missGap: the others wait for the same answer
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

// host accepts one.
func (k *keyring) host(name string) func(ed25519.PublicKey) error {
	return func(key ed25519.PublicKey) error {
		if k.owner(key) != name {
			return errStranger
		}
		return nil
	}
}
