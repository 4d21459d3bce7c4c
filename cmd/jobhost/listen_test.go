package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/jobhost/jobhost/host/manifest"
)

// TestListen: a host whose address is taken, and which may have another, is found by commands.
func TestListen(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	other, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	h := &manifest.Host{Listen: taken, Data: t.TempDir()}
	if l, err := listen(t.Context(), h, ""); err == nil {
		l.Close()
		t.Fatal("it listens at an address that is taken")
	}
	l, err := listen(t.Context(), h, taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h.Listen = "127.0.0.1:7070" // what a manifest says that says nothing
	if got, want := writtenURL(h), "http://"+l.Addr().String(); got != want {
		t.Errorf("the host at %s is looked for at %q", want, got)
	}
	h.Listen = taken
	if got := writtenURL(h); got != "" {
		t.Errorf("the manifest says %s, and the host is looked for at %q", taken, got)
	}

	// What the host wrote is gone when it is untrue, and no other text is an address.
	other.Close()
	again, err := listen(t.Context(), h, "")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	h.Listen = "127.0.0.1:0"
	if got := writtenURL(h); got != "" {
		t.Errorf("an old host is looked for at %q", got)
	}
	if err := os.WriteFile(filepath.Join(h.Data, "listen"), []byte("example.com:80\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := writtenURL(h); got != "" {
		t.Errorf("the host is looked for at %q", got)
	}
}

// TestFoundByItsFile: commands beside a manifest that names no port find its host.
func TestFoundByItsFile(t *testing.T) {
	t.Parallel()
	c := newConsole(t, nil)
	text := "[host]\nlisten = \"127.0.0.1:0\"\nstore = \"mem:\"\n"
	if err := os.WriteFile(filepath.Join(c.env.dir, "manifest.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (locator{c.env}).target(); err == nil {
		t.Error("there is an address, and no host has started")
	}
	if err := os.MkdirAll(filepath.Join(c.env.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.env.dir, "data", "listen"), []byte("127.0.0.1:4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := (locator{c.env}).target(); err != nil || got.addr != "http://127.0.0.1:4711" {
		t.Errorf("got %+v, %v", got, err)
	}
}
