package wasiabi_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/jobhost/jobhost/runtime/runtimetest"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

// lie is how one function of the host misbehaves once a check has begun.
type lie int

const (
	honest  lie = iota
	refuses     // it does nothing and answers ENOSYS
	nothing     // it does nothing and answers OK
)

func (l lie) String() string { return [...]string{"honest", "refuses", "nothing"}[l] }

// liar runs the checks of one guest on a host with one function that misbehaves.
type liar struct {
	t        *testing.T
	runtime  wazero.Runtime
	compiled wazero.CompiledModule

	// Of the run that goes on.
	before   int    // how many calls are honest, those before the check begins
	function string // that lies
	lie      lie
	calls    []string
}

func newLiar(t *testing.T, guest string) *liar {
	t.Helper()
	ctx := t.Context()
	l := &liar{t: t, runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())}
	t.Cleanup(func() { _ = l.runtime.Close(context.WithoutCancel(ctx)) })
	builder := l.runtime.NewHostModuleBuilder(wasiabi.Module)
	for _, f := range wasiabi.Functions() {
		call := func(ctx context.Context, m api.Module, stack []uint64) { l.call(ctx, m, stack, f) }
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(call), f.Params, f.Results).Export(f.Name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.compiled, err = l.runtime.CompileModule(ctx, conformModule(t, guest)); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *liar) call(ctx context.Context, m api.Module, stack []uint64, f wasiabi.Function) {
	l.calls = append(l.calls, f.Name)
	switch {
	case len(l.calls) <= l.before || f.Name != l.function || l.lie == honest:
		f.Call(ctx, m, stack)
	case len(f.Results) == 0:
	case l.lie == refuses:
		stack[0] = uint64(wasiabi.ENOSYS)
	default:
		stack[0] = uint64(wasiabi.OK)
	}
}

// run runs a check and reports what became of its expectations.
func (l *liar) run(check string, s surrounding, dir string) string {
	l.t.Helper()
	cfg := wasiabi.Config{Args: s.args, BareEnv: true}
	for name, value := range s.env {
		cfg.Env = append(cfg.Env, name+"="+value)
	}
	if s.mounted {
		empty(l.t, dir)
		tree(l.t, dir, given)
		cfg.Mounts = []wasiabi.Mount{{Host: dir, Guest: "/"}}
	}
	system, err := wasiabi.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	defer system.Close()
	system.Begin(runtimetest.Attempt("", check), wasiabi.Command)
	defer system.End()
	l.calls = nil
	return l.start(&frame{l.t.Context(), system})
}

// start runs the command. What it printed follows its exit code.
func (l *liar) start(f *frame) string {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	m, err := l.runtime.InstantiateModule(f, l.compiled, config)
	if err != nil {
		l.t.Fatal(err)
	}
	defer m.Close(f)
	code := uint32(0)
	if _, err := m.ExportedFunction("_start").Call(f); err != nil {
		exit, ok := errors.AsType[*wasiabi.Exit](err)
		if !ok {
			return "trap"
		}
		code = exit.Code
	}
	got := f.system.Outcome(code)
	if got.Failure != nil {
		return got.Failure.Message
	}
	return "ok: " + string(got.Output)
}

// overlooked is what checks don't notice: where there is no work to be done, what a libc does for
// itself, and results that are what was in their place before.
var overlooked = map[string][]string{
	"conform": {
		"process/yield sched_yield nothing", "files/size_and_advice fd_advise nothing",
		"stats/no_terminal fd_fdstat_get nothing", "libc/listing fd_close nothing", "libc/listing fd_fdstat_get nothing",
		"libc/fopen fd_close nothing", "libc/fopen fd_seek refuses", "libc/fopen fd_seek nothing", "libc/seek fd_tell nothing",
		"libc/read_at fd_close nothing", "libc/write_at fd_close nothing", "libc/write_at path_filestat_get refuses",
	},
	"conform_as": {"bare/as/random_nothing random_get nothing"},
}

// TestConformNotices: the checks see when the host doesn't do what they are about. Each function that
// a check calls is replaced by one that refuses, and by one that only claims to have done its work.
func TestConformNotices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a thousand runs take seconds")
	}
	for _, guest := range conformGuests {
		t.Run(guest, func(t *testing.T) {
			t.Parallel()
			l, dir := newLiar(t, guest), t.TempDir()
			var got []string
			for n, s := range surroundings {
				list := strings.Fields(strings.TrimPrefix(l.run("list", s, dir), "ok: "))
				l.before = slices.Index(l.calls, "fd_write")
				for _, check := range list {
					if surroundingOf(check) == n {
						got = append(got, l.tell(check, s, dir)...)
					}
				}
				l.before = 0
			}
			if diff := cmp.Diff(overlooked[guest], got); diff != "" {
				t.Errorf("overlooked (-want +got):\n%s", diff)
			}
		})
	}
}

// tell runs a check with each lie about each function that it calls, and returns those that it overlooks.
func (l *liar) tell(check string, s surrounding, dir string) (overlooks []string) {
	l.t.Helper()
	l.lie = honest
	want := l.run(check, s, dir)
	called := slices.Compact(slices.Sorted(slices.Values(l.calls[l.before:])))
	if len(called) == 0 {
		overlooks = append(overlooks, check+" everything")
	}
	for _, l.function = range called {
		for _, l.lie = range []lie{refuses, nothing} {
			if l.run(check, s, dir) == want {
				overlooks = append(overlooks, check+" "+l.function+" "+l.lie.String())
			}
		}
	}
	l.lie = honest
	return overlooks
}
