package wasiabi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/wasiabi"
)

func TestLogStreams(t *testing.T) {
	t.Parallel()
	b := newBox(t, wasiabi.Config{})
	b.Begin(b.at, wasiabi.Log)
	if got, e := b.read(0, 10); got != "" || e != wasiabi.OK {
		t.Errorf("input %q, errno %d", got, e)
	}
	for _, text := range []string{"one\ntw", "o\n\nthree\x1b[0m"} {
		if n, e := b.write(1, text[:1], text[1:]); n != len(text) || e != wasiabi.OK {
			t.Errorf("wrote %d, errno %d", n, e)
		}
	}
	b.write(2, "bad\n", strings.Repeat("x", 200))
	b.End()
	want := "info one\ninfo two\ninfo \nwarn bad\ninfo three\\x1b[0m\nwarn " + strings.Repeat("x", 100) + " …(cut)\n"
	if got := b.log(); got != want {
		t.Errorf("log %q", got)
	}
	if got := b.at.Outcome(nil); got.Output != nil {
		t.Errorf("output %q", got.Output)
	}
	for fd, want := range map[uint64]byte{0: 0, 1: 2, 2: 2} {
		b.must("fd_fdstat_get", fd, result)
		if got := b.memory.b[result]; got != want {
			t.Errorf("descriptor %d has type %d, want %d", fd, got, want)
		}
	}
	b.must("environ_sizes_get", result, result+4)
	if b.u64() != 0 {
		t.Error("there is an environment")
	}
}

func TestCommandStreams(t *testing.T) {
	t.Parallel()
	b := newBox(t, wasiabi.Config{})
	b.must("poll_oneoff", b.put(fdSubscription(1, 0)), 2048, 1, result)
	if n := b.memory.b[2048+16]; n != 7 {
		t.Errorf("%d bytes of input are ready", n)
	}
	for _, want := range []string{"payl", "oad", "", ""} {
		if got, e := b.read(0, 4); got != want || e != wasiabi.OK {
			t.Errorf("read %q, errno %d, want %q", got, e, want)
		}
	}
	b.write(1, "res", "ult")
	b.write(2, "a line\n \nno end")
	for _, name := range []string{"fd_tell", "fd_sync"} {
		b.want(map[string]wasiabi.Errno{"fd_tell": wasiabi.ESPIPE, "fd_sync": wasiabi.ENOTCAPABLE}[name], name, []uint64{1, result}[:len(functions[name].Params)]...)
	}
	if _, e := b.write(0, "x"); e != wasiabi.EBADF {
		t.Errorf("write to the input: errno %d", e)
	}
	if _, e := b.read(1, 1); e != wasiabi.EBADF {
		t.Errorf("read from the output: errno %d", e)
	}
	if got := b.Outcome(0); got.Kind != jobhost.OutcomeSucceeded || string(got.Output) != "result" {
		t.Errorf("%+v", got)
	}
	b.End()
	if got := b.log(); got != "info a line\ninfo  \ninfo no end\n" {
		t.Errorf("log %q", got)
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	tooMuch := strings.Repeat("x", 1001)
	for _, tt := range []struct {
		name      string
		stdout    string
		stderr    string
		fail      string
		exit      uint32
		kind      jobhost.OutcomeKind
		code      string
		message   string
		retryable bool
	}{
		{name: "success", stdout: "r", stderr: "chat\n", kind: jobhost.OutcomeSucceeded},
		{name: "retry", stderr: "no network\n\n", exit: 75, kind: jobhost.OutcomeFailed, code: jobhost.FailExit, message: "exit code 75: no network", retryable: true},
		{name: "permanent", stderr: "one\ntwo\x1b", exit: 1, kind: jobhost.OutcomeFailed, code: jobhost.FailExit, message: `exit code 1: two\x1b`},
		{name: "silent", exit: 4294967295, kind: jobhost.OutcomeFailed, code: jobhost.FailExit, message: "exit code 4294967295"},
		{name: "said by other means", fail: "said", exit: 1, kind: jobhost.OutcomeFailed, code: jobhost.FailWorker, message: "said"},
		{name: "said, and success", fail: "said", kind: jobhost.OutcomeFailed, code: jobhost.FailWorker, message: "said"},
		{name: "too much", stdout: tooMuch, kind: jobhost.OutcomeFailed, code: jobhost.FailOutputTooLarge, message: "the result is over the limit of 1000 bytes", retryable: true},
		{name: "too much, and noticed", stdout: tooMuch, stderr: "write error", exit: 1, kind: jobhost.OutcomeFailed, code: jobhost.FailOutputTooLarge, message: "the result is over the limit of 1000 bytes", retryable: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, wasiabi.Config{})
			if _, e := b.write(1, tt.stdout); (e == wasiabi.EDQUOT) != (tt.stdout == tooMuch) {
				t.Errorf("errno %d", e)
			}
			b.write(2, tt.stderr)
			if tt.fail != "" {
				b.at.Fail(hostcall.FailPermanent, []byte(tt.fail))
			}
			got := b.Outcome(tt.exit)
			if got.Kind != tt.kind {
				t.Fatalf("%+v", got)
			}
			if f := got.Failure; f != nil && (f.Code != tt.code || f.Message != tt.message || f.Retryable != tt.retryable) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	b := newBox(t, wasiabi.Config{Args: []string{"", "--flag=é", "x"}})
	if got := b.strings("args"); !slices.Equal(got, []string{"w", "", "--flag=é", "x"}) {
		t.Errorf("%q", got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	b := newBox(t, wasiabi.Config{})
	b.at.Trace = "t"
	b.at.Labels = map[string]string{"a-b": "first", "a_b": "second", "ünï.C9": "="}
	b.at.Config = map[string]string{"url": "http://x/?a=b", "nul": "a\x00b"}
	b.at.Secrets = map[string]string{"key": "s"}
	want := []string{
		"JOBHOST_JOB_ID=j1", "JOBHOST_TASK=0", "JOBHOST_TASKS=1", "JOBHOST_ATTEMPT=1",
		"JOBHOST_PRIORITY=" + b.at.Priority.String(), "JOBHOST_WORKER=w", "JOBHOST_TRACE=t",
		"JOBHOST_LABEL_A_B=first", "JOBHOST_LABEL__N__C9==", "JOBHOST_CONFIG_URL=http://x/?a=b", "JOBHOST_SECRET_KEY=s",
	}
	if got := b.strings("environ"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	b.End()
	b.Begin(&hostcall.Attempt{}, wasiabi.Command)
	if got := b.strings("environ"); len(got) != 7 {
		t.Errorf("the next attempt finds %q", got)
	}
}

// TestOwnEnvironment has the cases of the official test suite: several variables
// whose values are odd, and none at all.
func TestOwnEnvironment(t *testing.T) {
	t.Parallel()
	odd := []string{"a=text", `b=escap " ing`, "c=new\nline"}
	for _, c := range []struct {
		name  string
		cfg   wasiabi.Config
		mode  wasiabi.Streams
		want  []string
		after int // variables of the job
	}{
		{"some", wasiabi.Config{Env: odd}, wasiabi.Command, odd, 7},
		{"only some", wasiabi.Config{Env: odd, BareEnv: true}, wasiabi.Command, odd, 0},
		{"none", wasiabi.Config{BareEnv: true}, wasiabi.Command, nil, 0},
		{"not a command", wasiabi.Config{Env: odd}, wasiabi.Log, odd, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, c.cfg)
			for range 2 {
				b.End()
				b.Begin(b.at, c.mode)
				got := b.strings("environ")
				if len(got) != len(c.want)+c.after || !slices.Equal(got[:len(c.want)], c.want) {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

// strings fetches arguments or environment as libraries do.
func (b *box) strings(what string) []string {
	b.t.Helper()
	b.must(what+"_sizes_get", result, result+4)
	count, size := b.u32(), b.u64()>>32
	const table, buf = 8192, 16384
	b.memory.b[buf+size] = 0xaa
	b.must(what+"_get", table, buf)
	if b.memory.b[buf+size] != 0xaa {
		b.t.Error("more was written than promised")
	}
	var all []string
	for i := range count {
		at := uint32(b.memory.b[table+i*4]) | uint32(b.memory.b[table+i*4+1])<<8
		text, _, _ := strings.Cut(string(b.memory.b[at:]), "\x00")
		all = append(all, text)
	}
	return all
}
