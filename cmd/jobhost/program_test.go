package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestMain makes the test binary the program itself where it has its name.
// (testscript.Main would do that too, but take the name from [TestScripts].)
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		main()
	}
	postgres.Main(m)
}

const programName = "jobhost"

// installProgram puts the program into a folder of the test's.
func installProgram(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, programName), data, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestProgram runs the scripts of testdata/program, in which exec jobhost is
// the whole program, in a process of its own, with real workers. Besides the
// usual commands they have:
//
//	await FILE REGEXP   wait until the file has a line that matches
//	paste FILE          run in a shell what FILE says to try in another terminal
//	postgres            start a PostgreSQL, whose URL is $POSTGRES; [postgres] says whether there is one
//
// $ADDR is a free address, and the folder has some guests.
func TestProgram(t *testing.T) {
	t.Parallel()
	bin := installProgram(t)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/program",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			// The race detector's second of patience at each exit is for programs
			// that don't wait for their goroutines.
			env.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("ADDR", listener.Addr().String())
			if err := listener.Close(); err != nil {
				return err
			}
			for name, module := range map[string][]byte{
				"echo.wasm": guests.Echo, "outcomes.wasm": guests.Outcomes, "canary_table.wasm": guests.CanaryTable, "ops.wasm": guests.Ops, "simd.wasm": guests.SIMD,
				"command.wasm": guests.Command, "extism.wasm": guests.Extism, "roomy.wasm": roomy(),
			} {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), module, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": awaitLine,
			"paste": paste,
			"postgres": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("POSTGRES", postgres.Start(t, "fsync=on").URL())
			},
		},
		Condition: func(string) (bool, error) {
			_, err := postgres.Program("postgres")
			return err == nil || os.Getenv("CI") != "", nil
		},
	})
}

func awaitLine(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[1])
	path := ts.MkAbs(args[0])
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(path)
		if err == nil && want.Match(text) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s does not say %s:\n%s", args[0], args[1], text)
		}
	}
}

func paste(ts *testscript.TestScript, _ bool, args []string) {
	_, after, found := strings.Cut(ts.ReadFile(args[0]), "Try in another terminal:\n")
	command, _, _ := strings.Cut(after, "\n")
	if !found {
		ts.Fatalf("%s says nothing to try", args[0])
	}
	ts.Logf("$ %s", strings.TrimSpace(command))
	ts.Check(ts.Exec("sh", "-c", command))
}

// roomy is a module like [guests.Noop] that needs 128 MiB of memory.
func roomy() []byte {
	return bytes.Replace(guests.Noop, []byte("\x05\x03\x01\x00\x01"), []byte("\x05\x04\x01\x00\x80\x10"), 1)
}
