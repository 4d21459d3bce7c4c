package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// env is all that commands see of the process around them, so that tests can
// run commands in process.
type env struct {
	stdin          io.Reader
	stdout, stderr *stream
	getenv         func(string) string
	// isTerminal tells of stdin, stdout or stderr.
	isTerminal func(stream any) bool
	// columns is how wide the terminal is now, if stderr is one.
	columns func() int
	now     func() time.Time
	// dir is where relative paths start; "" = the working directory.
	dir string
	// umask is how the process was started; "" = it still is as it was.
	umask string
	// connect returns the server at a target.
	connect func(target) (jobhost.Server, error)
	// asked is the target of the server that was connected to; nil = none yet.
	asked *target
	// options are the global flags.
	options options
	// began is true once flags and arguments were found fine and a command runs.
	began bool
}

func newEnv(stdin io.Reader, stdout, stderr io.Writer) *env {
	return &env{
		stdin:      stdin,
		stdout:     &stream{w: stdout, terminal: isTerminal(stdout)},
		stderr:     &stream{w: stderr, terminal: isTerminal(stderr)},
		getenv:     os.Getenv,
		isTerminal: isTerminal,
		columns:    func() int { return columns(stderr) },
		now:        time.Now,
		connect:    connect,
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns returns the width of a terminal; 80 where that can't be told.
func columns(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// path returns where a path of the command line leads.
func (e *env) path(name string) string {
	if e.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.dir, name)
}

// note tells the user something on stderr that is not an error.
func (e *env) note(format string, args ...any) {
	_, _ = fmt.Fprintf(e.stderr, "jobhost: %s\n", printable(fmt.Sprintf(format, args...)))
}

// json writes v on stdout as one line of JSON.
func (e *env) json(v any) error { return writeJSON(e.stdout, v) }

// jsonLines writes a list, one element a line.
func jsonLines[T any](e *env, list []T) error {
	for i := range list {
		if err := e.json(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = w.Write(append(text.EscapeJSON(data), '\n'))
	return err
}

// stream is stdout or stderr. It remembers the first error of a write, so
// that commands print without looking and the exit code still tells of a full
// disk. Its methods may be called from many goroutines.
type stream struct {
	terminal bool

	mu  sync.Mutex // protects w and err
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	if err != nil {
		s.err = fmt.Errorf("write output: %w", err)
	}
	return n, s.err
}

// failure returns the first error of a write.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// options are the flags that every command has.
type options struct {
	addr, token, tokenFile, manifest string
	output                           choice
}

func (o *options) register(root *cobra.Command) {
	o.output = choice{value: "table", names: []string{"table", "json"}}
	f := root.PersistentFlags()
	f.StringVar(&o.addr, "addr", "", "`URL` of the host (JOBHOST_ADDR; default \""+defaultAddr+"\")")
	f.StringVar(&o.token, "token", "", "`TOKEN` of the API (JOBHOST_TOKEN)")
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE` that holds the token (JOBHOST_TOKEN_FILE; default the one of the manifest)")
	f.StringVarP(&o.manifest, "manifest", "f", "", "manifest `FILE` (JOBHOST_MANIFEST; default \"manifest.toml\")")
	f.VarP(&o.output, "output", "o", "`FORMAT` of answers: table, or json with one object per line")
	complete(root, "output", o.output.names...)
}

// wantsJSON reports whether answers are for programs.
func (e *env) wantsJSON() bool { return e.options.output.value == "json" }
