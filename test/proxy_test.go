package test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// proxy is a real proxy in front of a host.
type proxy struct {
	t    *testing.T
	addr string // where it listens
	name string // the host name that it goes by; "" = none, and no TLS
}

// proxies start each proxy that docs/operations.md describes, with the settings given there and without.
var proxies = []struct {
	name  string
	start func(t *testing.T, upstream string) *proxy
}{
	{"nginx plain", func(t *testing.T, upstream string) *proxy {
		addr := freeAddr(t)
		return startNginx(t, addr, "", fmt.Sprintf("server { listen %s; location / { proxy_pass http://%s; } }", addr, upstream))
	}},
	{"nginx as documented", func(t *testing.T, upstream string) *proxy {
		addr, dir := freeAddr(t), t.TempDir()
		certificate(t, dir)
		return startNginx(t, addr, documentedName, strings.NewReplacer(
			"listen 443 ", "listen "+addr+" ", "127.0.0.1:7070", upstream, "/etc/ssl/", dir+"/",
		).Replace(snippet(t, "nginx")))
	}},
	{"caddy plain", func(t *testing.T, upstream string) *proxy {
		addr := freeAddr(t)
		return startCaddy(t, addr, "", fmt.Sprintf("{\n\tadmin off\n}\nhttp://%s {\n\treverse_proxy %s\n}\n", addr, upstream))
	}},
	{"caddy as documented", func(t *testing.T, upstream string) *proxy {
		addr := freeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		_, other, _ := net.SplitHostPort(freeAddr(t))
		// A certificate of its own, and ports of its own.
		global := fmt.Sprintf("{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttps_port %s\n\thttp_port %s\n}\n", port, other)
		return startCaddy(t, addr, documentedName, global+strings.ReplaceAll(snippet(t, "caddyfile"), "127.0.0.1:7070", upstream))
	}},
}

const documentedName = "jobs.example.com"

// snippet returns the only example in a language of docs/operations.md.
func snippet(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("docs/operations.md has no example in %s", language)
	}
	return code
}

// certificate makes one for the documented name, with its key.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{documentedName}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		documentedName + ".pem": {Type: "CERTIFICATE", Bytes: cert}, documentedName + ".key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func startNginx(t *testing.T, addr, name, server string) *proxy {
	t.Helper()
	dir := t.TempDir()
	var paths strings.Builder
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&paths, "\t%s_temp_path %s/%s;\n", what, dir, what)
	}
	config := fmt.Sprintf("daemon off;\npid %s/pid;\nevents {}\nhttp {\n\taccess_log off;\n%s%s}\n", dir, paths.String(), server)
	return startProxy(t, addr, name, "nginx", dir, config, "-e", "stderr", "-p", dir, "-c", filepath.Join(dir, "config"))
}

func startCaddy(t *testing.T, addr, name, config string) *proxy {
	t.Helper()
	dir := t.TempDir()
	return startProxy(t, addr, name, "caddy", dir, config, "run", "--adapter", "caddyfile", "--config", filepath.Join(dir, "config"))
}

// startProxy runs a program with a file "config" until the test ends.
func startProxy(t *testing.T, addr, name, program, dir, config string, args ...string) *proxy {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + program)
	}
	if err != nil {
		text := program + " is not installed; Debian's packages nginx-light and caddy have what this needs"
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_ = cmd.Wait()
		close(ended)
	})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		group.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", program, log.String())
		}
	})
	p := &proxy{t, addr, name}
	p.await(ended)
	return p
}

// await waits until the proxy passes on requests.
func (p *proxy) await(ended <-chan struct{}) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := p.get(ctx, "/readyz", "")
		if err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			p.t.Fatal("the proxy has ended")
		case <-ctx.Done():
			p.t.Fatalf("the proxy doesn't answer: %v", err)
		}
	}
}

// url returns that of a path behind the proxy.
func (p *proxy) url(path string) string {
	if p.name == "" {
		return "http://" + p.addr + path
	}
	return "https://" + p.name + path
}

// client returns one that finds the proxy under its name.
func (p *proxy) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, p.addr)
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is the test's own
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}
}

// dial connects to the proxy to send what is not proper HTTP.
func (p *proxy) dial() net.Conn {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err == nil && p.name != "" {
		secured := tls.Client(conn, &tls.Config{ServerName: p.name, InsecureSkipVerify: true}) //nolint:gosec // the certificate is the test's own
		conn, err = secured, secured.HandshakeContext(p.t.Context())
	}
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return conn
}

func (p *proxy) get(ctx context.Context, path, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url(path), nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.client().Do(req)
	if err == nil && resp.StatusCode == http.StatusBadGateway {
		return nil, errors.Join(errors.New("bad gateway"), resp.Body.Close())
	}
	return resp, err
}
