// Package postgres starts real PostgreSQL servers for tests, each in a folder of
// its own and on loopback only.
package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a running PostgreSQL.
type Server struct {
	dir     string
	port    int
	as      *syscall.Credential // PostgreSQL refuses to run as root; nil = the user of the test
	options []string

	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	waits   sync.WaitGroup
}

// Times that are given to a server.
const (
	startTime = time.Minute
	stopTime  = 30 * time.Second
)

// Start starts a new server that stops with the test. Options are settings such as fsync=on; by default a server
// keeps nothing over a loss of power, which makes it fast. Without an installation the test is skipped, and
// fails in CI.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	need(t)
	return startWith(t, options)
}

func startWith(t testing.TB, options []string, prepare ...func(*Server) error) *Server {
	t.Helper()
	s, err := start(t, options, prepare...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t)
		_ = os.RemoveAll(s.dir)
	})
	return s
}

// need skips a test without an installation.
func need(t testing.TB) {
	t.Helper()
	if _, err := Program("postgres"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// Program returns the path of a program of PostgreSQL. Debian keeps them out of the PATH.
func Program(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return versionOf(a) - versionOf(b) }), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s of PostgreSQL is not installed", name)
	}
	return path, nil
}

func versionOf(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// start makes a server, which is prepared before it is launched.
func start(t testing.TB, options []string, prepare ...func(*Server) error) (s *Server, err error) {
	s = &Server{options: append([]string{"fsync=off", "synchronous_commit=on", "full_page_writes=off", "max_connections=200", "max_wal_size=256MB"}, options...)}
	if s.dir, err = newFolder(t); err != nil {
		return nil, err
	}
	if err := s.owner(); err != nil {
		return nil, err
	}
	if err := s.run("initdb", "--pgdata="+s.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"); err != nil {
		return nil, err
	}
	for _, f := range prepare {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	return s, s.launchAnywhere()
}

// owner gives the folder to a user that may run a server.
func (s *Server) owner() error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, int(uid), int(gid))
	}
	return fmt.Errorf("PostgreSQL doesn't run as root, and there is no user postgres")
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run runs a program of PostgreSQL to its end.
func (s *Server) run(name string, args ...string) error {
	path, err := Program(name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// launchAnywhere launches a server on a port that is free, unless another program is faster.
func (s *Server) launchAnywhere() (err error) {
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.launch(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

// launch starts the process and waits until it takes connections.
func (s *Server) launch() error {
	path, err := Program("postgres")
	if err != nil {
		return err
	}
	args := []string{"-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", s.dir}
	for _, o := range s.options {
		args = append(args, "-c", o)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.process = exec.CommandContext(context.Background(), path, args...)
	s.process.Dir, s.process.Stdout, s.process.Stderr = s.dir, log, log
	s.process.SysProcAttr = attributes(s.as)
	if err := s.launched(); err != nil {
		return err
	}
	if err := s.answer(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("start PostgreSQL: %w\n%s", err, text)
	}
	return nil
}

// launched starts the process from a thread that stays until it ends: the kernel ends the server with the thread that has
// started it, and a thread ends with a goroutine of some test that was locked to it.
func (s *Server) launched() error {
	process, started, ended := s.process, make(chan error), make(chan struct{})
	s.ended = ended
	s.waits.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := process.Start()
		started <- err
		if err == nil {
			_ = process.Wait()
		}
		close(ended)
	})
	return <-started
}

// answer waits until the server answers.
func (s *Server) answer() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return fmt.Errorf("it has ended: %w", err)
		case <-ctx.Done():
			return err
		}
	}
}

// URL is that of the database postgres, for its superuser.
func (s *Server) URL() string { return s.URLAt(s.port) }

// URLAt is the URL with another port, such as that of a [Proxy].
func (s *Server) URLAt(port int) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Address is where the server listens.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Stop ends the server in an orderly way, with the sessions that there are.
func (s *Server) Stop(t testing.TB) { s.end(t, syscall.SIGINT) }

// Crash ends the server at once, as pg_ctl stop -m immediate does: the next start recovers from the log.
func (s *Server) Crash(t testing.TB) { s.end(t, syscall.SIGQUIT) }

// Restart starts a server that was stopped or has crashed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) end(t testing.TB, sig syscall.Signal) {
	t.Helper()
	_ = s.process.Process.Signal(sig)
	select {
	case <-s.ended:
	case <-time.After(stopTime):
		_ = s.process.Process.Kill()
		<-s.ended
		t.Errorf("PostgreSQL did not end after %v", sig)
	}
}

// Exec runs statements as the superuser.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// Query returns the rows of a query as texts, as the superuser.
func (s *Server) Query(t testing.TB, sql string) (list [][]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var row []string
		for _, value := range rows.RawValues() {
			row = append(row, string(value))
		}
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// Schema returns the name of a schema that isn't there yet, and is dropped with the test.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := "jh_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() { s.Exec(t, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return name
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns a server that all tests of a package share. Its TestMain has to call [Main].
func Shared(t testing.TB) *Server {
	t.Helper()
	need(t)
	shared.once.Do(func() { shared.server, shared.err = start(t, nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Main runs the tests of a package, ends its shared server and exits.
func Main(m *testing.M) {
	code := m.Run()
	if s := shared.server; s != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT)
		<-s.ended
		_ = os.RemoveAll(s.dir)
	}
	os.Exit(code) //nolint:forbidigo // TestMain calls this last
}

func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
