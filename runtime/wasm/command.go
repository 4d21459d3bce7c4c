package wasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/module"
	"github.com/jobhost/jobhost/runtime/wasiabi"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// commandABI is for programs with a main function, for WASI preview 1: the
// payload is their standard input, what they write to standard output is the
// result. See docs/wasi.md.
type commandABI struct{}

func (commandABI) define(ctx context.Context, r wazero.Runtime) error {
	return wasiabi.Instantiate(ctx, r)
}

const commandSignature = "() → ()"

func (commandABI) signature() string { return commandSignature }

func (commandABI) once(*module.Module) []string { return nil }

func (commandABI) contract(p *Plugin, m *module.Module, entry string) error {
	if err := exportsMemory(m); err != nil {
		return err
	}
	if preflight.Functions(m)[startExport] == commandSignature {
		p.info.Entries = []string{startExport}
	}
	return p.chooseEntry(m, entry, startExport, commandSignature, "a command has one entry, "+startExport)
}

func (commandABI) guest(_ context.Context, i *Instance) (guest, error) {
	return &commandGuest{i: i}, nil
}

// commandGuest runs a command. It starts from the module as in the file: a
// program initialises itself in each run.
type commandGuest struct {
	alone
	i     *Instance
	start callee
}

func (g *commandGuest) attach() {
	g.start = callee{instance: g.i, module: g.i.module, name: startExport}
}
func (*commandGuest) initialise() error { return nil }
func (*commandGuest) remember() any     { return nil }
func (*commandGuest) reset(any) bool    { return true }

func (g *commandGuest) call(int, *hostcall.Attempt) (jobhost.Outcome, error) {
	err := g.start.call(nil)
	if exit, ok := errors.AsType[*wasiabi.Exit](err); ok {
		return g.i.system.Outcome(exit.Code), nil
	}
	if err != nil {
		return jobhost.Outcome{}, err
	}
	return g.i.system.Outcome(0), nil
}
