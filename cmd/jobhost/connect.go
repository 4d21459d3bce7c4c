package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
	"github.com/jobhost/jobhost/host/manifest"
)

const (
	defaultAddr     = "http://127.0.0.1:7070"
	defaultManifest = "manifest.toml"
	mostToken       = 4 << 10 // bytes of a token file
)

// target says which server to talk to, and how.
type target struct {
	addr  string // a URL
	token string // may be empty
}

// connect is the only place that knows how a server is reached.
func connect(t target) (jobhost.Server, error) { return client.New(t.addr, t.token), nil }

// server returns the server that flags, environment and manifest point to.
func (e *env) server() (jobhost.Server, error) {
	t, err := e.target()
	if err != nil {
		return nil, err
	}
	return e.connect(t)
}

// target settles where to ask: flags win over the environment, the
// environment over the manifest.
func (e *env) target() (target, error) {
	addr := cmp.Or(e.options.addr, e.getenv("JOBHOST_ADDR"))
	token, found, err := e.givenToken()
	if err != nil {
		return target{}, err
	}
	if addr == "" || !found {
		m, named, err := e.clientManifest()
		if err != nil {
			return target{}, err
		}
		if m != nil {
			fromManifest := addr == ""
			if addr == "" {
				addr = listenURL(m.Host.Listen)
			}
			// A manifest that merely lies here must not send its token to any server.
			if !found && (named || fromManifest || loopback(addr)) {
				if token, err = e.readToken(m.Host.TokenFile, true); err != nil {
					return target{}, err
				}
			}
		}
	}
	addr, err = checkAddr(cmp.Or(addr, defaultAddr))
	return target{addr: addr, token: token}, err
}

// givenToken returns the token that flags or environment give.
func (e *env) givenToken() (token string, found bool, err error) {
	for _, source := range []struct{ token, file string }{
		{e.options.token, e.options.tokenFile},
		{e.getenv("JOBHOST_TOKEN"), e.getenv("JOBHOST_TOKEN_FILE")},
	} {
		switch {
		case source.token != "":
			token, err = checkToken(source.token)
			return token, true, asUsage(err)
		case source.file != "":
			token, err = e.readToken(e.path(source.file), false)
			return token, true, err
		}
	}
	return "", false, nil
}

// manifestPath returns the manifest that flags or environment name, else the
// default one.
func (e *env) manifestPath() string {
	return e.path(cmp.Or(e.namedManifest(), defaultManifest))
}

func (e *env) namedManifest() string {
	return cmp.Or(e.options.manifest, e.getenv("JOBHOST_MANIFEST"))
}

// clientManifest reads the manifest for what it says about the server. One
// that nobody named need not be there nor be right: it may have nothing to do
// with jobhost.
func (e *env) clientManifest() (m *manifest.Manifest, named bool, err error) {
	named = e.namedManifest() != ""
	m, err = manifest.Load(e.manifestPath())
	if err != nil && !named {
		return nil, false, nil
	}
	return m, named, err
}

// readToken reads a token file; with maybe, it need not be there.
func (e *env) readToken(path string, maybe bool) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		if maybe && errors.Is(err, fs.ErrNotExist) {
			return "", nil // the server makes it when it starts
		}
		return "", fmt.Errorf("read the token: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, mostToken+1))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if len(data) > mostToken {
		return "", fmt.Errorf("read the token: %s is larger than %s", path, size(mostToken))
	}
	token, err := checkToken(strings.TrimSpace(string(data)))
	if err != nil {
		return "", fmt.Errorf("read the token from %s: %w", path, err)
	}
	return token, nil
}

// checkToken keeps out what can't stand in a header. The error doesn't repeat the token.
func checkToken(token string) (string, error) {
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", errors.New("a token has no spaces or special characters")
		}
	}
	return token, nil
}

// listenURL returns how a host that listens at addr is reached from here; ""
// when nobody can know.
func listenURL(addr string) string {
	name, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return ""
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(name, port)
}

// withScheme makes a URL of an address.
func withScheme(addr string) string {
	if strings.Contains(addr, "://") {
		return addr
	}
	return "http://" + addr
}

func loopback(addr string) bool {
	u, err := url.Parse(withScheme(addr))
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func checkAddr(addr string) (string, error) {
	u, err := url.Parse(withScheme(addr))
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return strings.TrimSuffix(u.String(), "/"), nil
	}
	return "", &usageError{cause: &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Field:   "addr",
		Message: "the address of the host is not a URL of a server",
		Hint:    "write it like " + defaultAddr,
	}}
}
