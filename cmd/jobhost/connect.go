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
	// addrFrom and tokenFrom say where they come from, for people; empty = nothing was
	// given, so that addr is the default one, and there is no token.
	addrFrom, tokenFrom string
	noToken             string // why there is none
}

// connect is the only place that knows how a server is reached.
func connect(t target) (jobhost.Server, error) { return client.New(t.addr, t.token), nil }

// server returns the server that flags, environment and manifest point to.
func (e *env) server() (jobhost.Server, error) {
	t, err := locator{e}.target()
	if err != nil {
		return nil, err
	}
	e.asked = &t
	return e.connect(t)
}

// locator finds out where the host is, and with what token to ask it.
type locator struct{ *env }

// target settles where to ask: flags win over the environment, the
// environment over the manifest.
func (e locator) target() (target, error) {
	t, err := e.given()
	if err != nil {
		return target{}, err
	}
	if t.addr == "" || t.tokenFrom == "" {
		if err := e.addManifest(&t); err != nil {
			return target{}, err
		}
	}
	t.addr, err = checkAddr(cmp.Or(t.addr, defaultAddr))
	return t, err
}

// given returns what flags or environment give.
func (e locator) given() (t target, err error) {
	switch {
	case e.options.addr != "":
		t.addr, t.addrFrom = e.options.addr, "--addr"
	case e.getenv("JOBHOST_ADDR") != "":
		t.addr, t.addrFrom = e.getenv("JOBHOST_ADDR"), "JOBHOST_ADDR"
	}
	for _, source := range []struct{ token, file, tokenFrom, fileFrom string }{
		{e.options.token, e.options.tokenFile, "--token", "--token-file"},
		{e.getenv("JOBHOST_TOKEN"), e.getenv("JOBHOST_TOKEN_FILE"), "JOBHOST_TOKEN", "JOBHOST_TOKEN_FILE"},
	} {
		switch {
		case source.token != "":
			t.tokenFrom = source.tokenFrom
			t.token, err = checkToken(source.token)
			return t, asUsage(err)
		case source.file != "":
			t.tokenFrom = source.fileFrom + " " + source.file
			t.token, err = e.readToken(e.path(source.file), false)
			return t, err
		}
	}
	return t, nil
}

// addManifest adds what the manifest says.
func (e locator) addManifest(t *target) error {
	h, err := e.manifest()
	name := e.manifestPath()
	switch {
	case err != nil && t.addr == "", err != nil && e.namedManifest() != "":
		return errors.Join(err, &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: name + " doesn't say where the host is",
			Hint: "correct it, or say --addr URL --token-file FILE",
		})
	case err != nil:
		e.report(err)
		t.noToken = name + " was not used"
		return nil
	case h == nil:
		t.noToken = "there is no " + name + " to find the token by"
		return nil
	}
	fromManifest := t.addr == ""
	if fromManifest {
		t.addrFrom = name
		if t.addr = writtenURL(h); t.addr != "" {
			t.addrFrom = shortPath(addressFile(h)) + ", which the host wrote"
		} else if t.addr = listenURL(h.Listen); t.addr == "" {
			return &jobhost.Error{
				Code: jobhost.CodeInvalid, Field: "addr", Message: name + " lets the host take any free port, so its address is not known here",
				Hint: "say --addr URL, as the host printed it when it started",
			}
		}
	}
	// A manifest that merely lies here must not send its token to any server.
	if t.tokenFrom != "" {
		return nil
	}
	if e.namedManifest() == "" && !fromManifest && !loopback(t.addr) {
		t.noToken = "the token of " + name + " is not sent to another machine"
		return nil
	}
	if t.token, err = e.readToken(h.TokenFile, true); err != nil {
		return err
	}
	if t.token == "" {
		t.noToken = shortPath(h.TokenFile) + ", which " + name + " names, is not there"
		return nil
	}
	t.tokenFrom = shortPath(h.TokenFile) + ", which " + name + " names"
	return nil
}

// manifestPath returns the manifest that flags or environment name, else the
// default one.
func (e *env) manifestPath() string {
	return e.path(cmp.Or(e.namedManifest(), defaultManifest))
}

func (e *env) namedManifest() string {
	return cmp.Or(e.options.manifest, e.getenv("JOBHOST_MANIFEST"))
}

// manifest reads the manifest for what it says about the server; nil when
// there is none, unless one was named.
func (e locator) manifest() (*manifest.Host, error) {
	h, err := manifest.LoadHost(e.manifestPath())
	if e.namedManifest() == "" && errors.Is(err, &jobhost.Error{Code: jobhost.CodeNotFound}) {
		return nil, nil
	}
	return h, err
}

// readToken reads a token file; with maybe, it need not be there.
func (e locator) readToken(path string, maybe bool) (string, error) {
	f, err := os.Open(path)
	switch {
	case maybe && errors.Is(err, fs.ErrNotExist):
		return "", nil // the server makes it when it starts
	case errors.Is(err, fs.ErrPermission):
		return "", &jobhost.Error{
			Code: jobhost.CodeDenied, Message: "read the token", Cause: err,
			Hint: "only the host's user may read it: run the command as that user, or pass the token by JOBHOST_TOKEN",
		}
	case err != nil:
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
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("read the token: %s is empty", path)
	}
	token, err := checkToken(text)
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
// when that is not known.
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
