package guesttest

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// Command is one run of a WASI command: what it finds, and what it did.
type Command struct {
	Args  []string // after the name
	Input []byte
	Files fs.FS // under /data; nil = there is no such folder

	Code           uint32
	Output, Errors bytes.Buffer
}

// Run runs a command to its end in wazero's interpreter, as [Start] does. A
// trap fails the test.
func (c *Command) Run(t testing.TB, module []byte) {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(64<<20>>16))
	defer func() { _ = r.Close(ctx) }() // it has nothing to lose
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	files := wazero.NewFSConfig()
	if c.Files != nil {
		files = files.WithFSMount(c.Files, "/data")
	}
	_, err := r.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").
		WithArgs(append([]string{"command"}, c.Args...)...).WithFSConfig(files).
		WithStdin(bytes.NewReader(c.Input)).WithStdout(&c.Output).WithStderr(&c.Errors))
	exit, exited := errors.AsType[*sys.ExitError](err)
	switch {
	case exited:
		c.Code = exit.ExitCode()
	case err != nil:
		t.Fatalf("%v\n%s", err, &c.Errors)
	}
}
