package firestorestate_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost/state/firestorestate"
	"github.com/jobhost/jobhost/state/statetest"
)

// emulators is a process of Node that runs emulators of others: the package
// @firestore-emulator/server, which `make firestore-emulator` installs.
type emulators struct {
	mu    sync.Mutex // protects the pipes
	ask   io.Writer
	ports *bufio.Reader
}

// emulatorFolder is where the package is; the Makefile has the same.
func emulatorFolder(t testing.TB) string {
	t.Helper()
	cache := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(os.Getenv("HOME"), ".cache"))
	folder := cmp.Or(os.Getenv("JOBHOST_FIRESTORE_EMULATOR"), filepath.Join(cache, "jobhost", "firestore-emulator-0.3.15"))
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "@firestore-emulator", "server")); err != nil {
		t.Skipf("no emulator of Firestore: `make firestore-emulator` installs it (%v)", err)
	}
	return folder
}

// startEmulators starts a process that ends with the test, or skips the test.
func startEmulators(t testing.TB) *emulators {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed (Debian: apt-get install nodejs npm)")
	}
	cmd := exec.Command(node, filepath.Join("testdata", "emulator.cjs"), emulatorFolder(t))
	cmd.Stderr = t.Output()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := cmp.Or(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the emulators: %v", err)
		}
	})
	return &emulators{ask: in, ports: bufio.NewReader(out)}
}

// next starts an emulator and returns its address.
func (e *emulators) next(t testing.TB) string {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := fmt.Fprintln(e.ask)
	port, err2 := e.ports.ReadString('\n')
	if err := cmp.Or(err, err2); err != nil {
		t.Fatalf("start an emulator: %v", err)
	}
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// TestEmulator runs the suite on a server of others.
func TestEmulator(t *testing.T) {
	t.Parallel()
	e := startEmulators(t)
	h := harness(func(t testing.TB) firestorestate.Options { return at(e.next(t)) })
	h.Skip = map[string]string{
		"many tasks":      "the emulator sends all states with every change of one",
		"pages of jobs":   "the emulator knows no cursors",
		"delete all":      "the emulator knows no cursors",
		"payload numbers": "the emulator refuses integers above 2^53",
		"hammer":          "the emulator has no transactions: a write may be made after its job was deleted",
	}
	t.Run("suite", func(t *testing.T) { statetest.Run(t, h) })
}

// TestEmulatorHost finds the emulator by the variable that all libraries know.
func TestEmulatorHost(t *testing.T) {
	e := startEmulators(t)
	t.Setenv("FIRESTORE_EMULATOR_HOST", e.next(t))
	s := open(t, firestorestate.Options{Project: "test"})
	if jobs, err := s.Jobs(t.Context(), "", 10); err != nil || len(jobs) != 0 {
		t.Errorf("got %v, %v", jobs, err)
	}
}
