package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/jobhost/jobhost"
)

// TestScripts runs the scripts of testdata/script. Besides the usual commands
// they have:
//
//	[!] jobhost ARG…       run a command line in process; [!] = it must fail
//	code N                 the last command line must have ended with this exit code
//	input FILE             the next command line reads FILE, or TEXT with -text
//	terminal on|off        whether stdin, stdout and stderr are terminals
//
// Each script has a server of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("ESC", "\x1b")
			env.Values[sessionKey{}] = &session{server: newServer(env.T().(testing.TB))}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"jobhost":  runScriptCommand,
			"code":     checkCode,
			"input":    setInput,
			"terminal": setTerminal,
		},
	})
}

type sessionKey struct{}

// session is what lasts from one command of a script to the next.
type session struct {
	server   jobhost.Server
	input    []byte
	terminal bool
	code     int
}

func sessionOf(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

func runScriptCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := sessionOf(ts)
	e := newEnv(bytes.NewReader(s.input), ts.Stdout(), ts.Stderr())
	e.stdout.terminal, e.stderr.terminal = s.terminal, s.terminal
	e.isTerminal = func(any) bool { return s.terminal }
	e.getenv = ts.Getenv
	e.dir = ts.MkAbs(".")
	e.now = func() time.Time { return testTime.Add(time.Minute) }
	e.connect = func(t target) (jobhost.Server, error) {
		if ts.Getenv("SHOW_TARGET") != "" {
			_, _ = fmt.Fprintf(ts.Stderr(), "%s token=%s\n", t.addr, t.token)
		}
		return s.server, nil
	}
	s.input = nil
	s.code = e.run(context.Background(), args)
	if (s.code != 0) != neg {
		ts.Fatalf("exit code %d", s.code)
	}
}

func checkCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(strings.Join(args, " "))
	ts.Check(err)
	if got := sessionOf(ts).code; got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func setInput(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 2 && args[0] == "-text" {
		sessionOf(ts).input = []byte(args[1])
		return
	}
	sessionOf(ts).input = []byte(ts.ReadFile(args[0]))
}

func setTerminal(ts *testscript.TestScript, _ bool, args []string) {
	sessionOf(ts).terminal = args[0] == "on"
}
