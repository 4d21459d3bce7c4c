package runtimetest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

func testLimits(t *testing.T, s Subject) {
	p := s.Open(t, runtime.Source{Limits: runtime.Limits{MemoryBytes: 1 << 20}})
	t.Run("output", func(t *testing.T) { t.Parallel(); testOutputLimit(t, s, p) })
	t.Run("log", func(t *testing.T) { t.Parallel(); testLogLimits(t, s, p) })
	t.Run("memory", func(t *testing.T) { t.Parallel(); testMemoryLimit(t, s, p) })
	if !s.can("emit_big") {
		return
	}
	t.Run("emit", func(t *testing.T) {
		t.Parallel()
		at := Attempt("emit_big", "1001")
		at.Limits.OutputBytes = 1000
		if got := run(t, p, at); got != "-4" {
			t.Errorf("a message over the limit was answered with %s", got)
		}
	})
}

func testOutputLimit(t *testing.T, s Subject, p runtime.Plugin) {
	for _, entry := range []string{"big_result", "big_output"} {
		if !s.can(entry) {
			continue
		}
		for input, fits := range map[string]bool{"1000": true, "1001": false, "60000": false} {
			at := s.Call(entry, input)
			at.Limits.OutputBytes = 1000
			got := Instance(t, p).Run(t.Context(), at)
			switch {
			case got.Replace != "":
				t.Errorf("%s(%s) broke the sandbox", entry, input)
			case fits && (got.Outcome.Kind != jobhost.OutcomeSucceeded || len(got.Outcome.Output) != 1000):
				t.Errorf("%s(%s): %v, %d bytes", entry, input, got.Outcome.Kind, len(got.Outcome.Output))
			case !fits && (got.Outcome.Failure == nil || got.Outcome.Failure.Code != jobhost.FailOutputTooLarge):
				t.Errorf("%s(%s): %+v", entry, input, got.Outcome)
			}
		}
	}
}

func testLogLimits(t *testing.T, s Subject, p runtime.Plugin) {
	at := s.Call("log_flood", "10000")
	at.Limits.LogBytes = 1000
	run(t, p, at)
	lines, dropped := at.TakeLog()
	if len(lines) > 1000 || int64(bytes.Count(lines, []byte("\n")))+dropped != 10000 {
		t.Errorf("%d bytes, %d lines, %d dropped", len(lines), bytes.Count(lines, []byte("\n")), dropped)
	}
	at = s.Call("log_echo", strings.Repeat("x", 60000))
	at.Limits.LineBytes = 100
	run(t, p, at)
	if lines, _ := at.TakeLog(); string(lines) != "info "+strings.Repeat("x", 100)+" …(cut)\n" {
		t.Errorf("log %.200q", lines)
	}
	at = s.Call("log_echo", "x")
	at.Limits = hostcall.Limits{}
	run(t, p, at)
	if lines, dropped := at.TakeLog(); lines != nil || dropped != 1 {
		t.Errorf("without any room: %q, %d dropped", lines, dropped)
	}
}

func testMemoryLimit(t *testing.T, s Subject, p runtime.Plugin) {
	if got := run(t, p, s.Call("grow", "17")); got != "-1" {
		t.Errorf("growing over the limit was answered with %s", got)
	}
	if got := run(t, p, s.Call("grow", "1")); got == "-1" {
		t.Error("growing within the limit was refused")
	}
	got := Instance(t, p).Run(t.Context(), s.Call("grow_trap", "1"))
	f := got.Outcome.Failure
	if f == nil || f.Code != jobhost.FailMemory || f.Category != jobhost.CategoryResource || !strings.Contains(f.Message, "limit of 1 MiB") || got.Replace == "" || !got.MemoryRefused {
		t.Errorf("out of memory: %+v", f)
	}
}
