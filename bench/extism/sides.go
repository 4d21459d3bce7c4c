package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	extism "github.com/extism/go-sdk"

	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// side runs one job again and again.
type side interface {
	call() ([]byte, error)
	close(ctx context.Context)
}

// modules finds plugins: ours in the repository, Extism's in the module cache.
type modules struct{ root string }

func newModules(root string) *modules { return &modules{root} }

func (m *modules) read(ctx context.Context, name string) ([]byte, error) {
	if strings.Contains(name, "/") {
		return os.ReadFile(filepath.Join(m.root, filepath.FromSlash(name)))
	}
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		return nil, fmt.Errorf("find go-sdk: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "wasm", name))
}

// theirs is an instance of go-sdk.
type theirs struct {
	compiled *extism.CompiledPlugin
	plugin   *extism.Plugin
	entry    string
	input    []byte
}

func (m *modules) openTheirs(ctx context.Context, j job, input []byte) (*theirs, error) {
	module, err := m.read(ctx, j.module)
	if err != nil {
		return nil, err
	}
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: module}}}
	compiled, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return nil, err
	}
	plugin, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, errors.Join(err, compiled.Close(ctx))
	}
	return &theirs{compiled, plugin, j.entry, input}, nil
}

func (t *theirs) call() ([]byte, error) {
	code, output, err := t.plugin.Call(t.entry, t.input)
	if err == nil && code != 0 {
		err = fmt.Errorf("code %d", code)
	}
	return output, err
}

func (t *theirs) close(ctx context.Context) {
	_ = t.plugin.Close(ctx)
	_ = t.compiled.Close(ctx)
}

// ours is a sandbox that is reset after each job.
type ours struct {
	engine  *wasm.Engine
	sandbox *runtime.Sandbox
	ctx     context.Context // of all jobs, like that of a pool slot
	cancel  context.CancelFunc
	at      hostcall.Attempt
	entry   string
	input   []byte
}

func (m *modules) openOurs(ctx context.Context, j job, input []byte) (*ours, error) {
	module, err := m.read(ctx, j.module)
	if err != nil {
		return nil, err
	}
	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		return nil, err
	}
	source := runtime.Source{Worker: "bench", Path: j.module, Bytes: module, ABI: runtime.ABIExtism, Entry: j.entry, Isolation: runtime.IsolateJob}
	if j.module == native {
		source.ABI = runtime.ABIJobhost
	}
	plugin, err := engine.Load(ctx, source)
	if err != nil {
		return nil, errors.Join(err, engine.Close(ctx))
	}
	o := &ours{engine: engine, entry: j.entry, input: input}
	o.ctx, o.cancel = context.WithCancel(ctx)
	o.sandbox = runtime.NewSandbox(plugin, nil)
	return o, nil
}

func (o *ours) call() ([]byte, error) {
	o.at.Reset()
	o.at.Entry, o.at.Input = o.entry, o.input
	o.at.Limits.OutputBytes = 1 << 20
	o.at.Deadline = time.Now().Add(30 * time.Second)
	outcome := o.sandbox.Run(o.ctx, &o.at)
	if outcome.Failure != nil {
		return nil, errors.New(outcome.Failure.Message)
	}
	return outcome.Output, nil
}

func (o *ours) close(ctx context.Context) {
	o.cancel()
	_ = o.sandbox.Close(ctx)
	_ = o.engine.Close(ctx)
}

// text is an input of n bytes.
func text(n int) []byte {
	return bytes.Repeat([]byte("the quick brown fox jumps over it "), n/34+1)[:n]
}
