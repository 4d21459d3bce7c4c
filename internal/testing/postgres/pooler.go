package postgres

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Pooler starts a pgbouncer in front of the server, which stops with the test, and returns its port. The mode is what
// pgbouncer calls pool_mode; options are more of its settings. Without an installation the test is skipped, and fails in CI.
func (s *Server) Pooler(t testing.TB, mode string, options ...string) (port int) {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("pgbouncer is not installed")
	}
	if port, err = freePort(); err != nil {
		t.Fatal(err)
	}
	settings, err := s.poolerSettings(port, mode, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, settings)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = t.Output(), t.Output(), attributes(s.as)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	awaitPort(t, port)
	return port
}

// poolerSettings writes the files of a pgbouncer and returns the path of the first.
func (s *Server) poolerSettings(port int, mode string, options []string) (string, error) {
	dir, err := os.MkdirTemp(s.dir, "pooler-")
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
		"auth_type = trust\nauth_file = %s/users\npool_mode = %s\n", s.port, port, dir, mode)
	for _, o := range options {
		text += o + "\n"
	}
	path := filepath.Join(dir, "pgbouncer.ini")
	for name, content := range map[string]string{path: text, filepath.Join(dir, "users"): "\"postgres\" \"\"\n"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil { //nolint:gosec // another user reads it, and nothing in it is secret
			return "", err
		}
	}
	return path, os.Chmod(dir, 0o755) //nolint:gosec // as above
}

// awaitPort waits until something takes connections at a port.
func awaitPort(t testing.TB, port int) {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for deadline := time.Now().Add(startTime); ; <-time.After(10 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
