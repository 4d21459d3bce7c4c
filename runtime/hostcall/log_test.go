package hostcall_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

// checkSafe fails for text that a terminal or a reader could take for something else.
func checkSafe(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%q is not valid UTF-8", text)
	}
	for _, r := range text {
		if r != 0x200c && r != 0x200d && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Fatalf("%q has %U", text, r)
		}
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Limits: hostcall.Limits{LogBytes: 1000, LineBytes: 100, LogLevel: -4}}
	for _, level := range []slog.Level{-2147483648, -5, -4, -1, 0, 3, 4, 7, 8, 2147483647} {
		at.Log(level, []byte("x\r\n\n"))
	}
	lines, dropped := at.TakeLog()
	if want := "debug x\ndebug x\ninfo x\ninfo x\nwarn x\nwarn x\nerror x\nerror x\n"; string(lines) != want || dropped != 0 {
		t.Errorf("%q, dropped %d", lines, dropped)
	}
	if lines, dropped := at.TakeLog(); lines != nil || dropped != 0 {
		t.Errorf("a second time: %q, dropped %d", lines, dropped)
	}
}

func TestLogDropsTheRest(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Limits: hostcall.Limits{LogBytes: 20, LineBytes: 100}}
	at.Log(0, []byte("first"))                 // 11 bytes
	at.Log(0, []byte("too long for the rest")) // the log ends here
	at.Log(0, []byte("x"))
	at.Log(-4, []byte("not wanted, not counted"))
	lines, dropped := at.TakeLog()
	if string(lines) != "info first\n" || dropped != 2 {
		t.Errorf("%q, dropped %d", lines, dropped)
	}
}

// A trace is indented by tabs, and people read it in the log.
func TestLogShowsTabsAsSpaces(t *testing.T) {
	t.Parallel()
	at := &hostcall.Attempt{Limits: hostcall.Limits{LogBytes: 1000, LineBytes: 100}}
	at.Log(4, []byte("\tmain.go:18 +0x2"))
	if lines, _ := at.TakeLog(); string(lines) != "warn     main.go:18 +0x2\n" {
		t.Errorf("%q", lines)
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte("one\ntwo"), 3, 50, 10)
	f.Fuzz(func(t *testing.T, msg []byte, times, logBytes, lineBytes int) {
		times = max(min(times, 100), 0)
		at := &hostcall.Attempt{Limits: hostcall.Limits{LogBytes: max(min(logBytes, 1<<16), 0), LineBytes: max(min(lineBytes, 1<<12), 0)}}
		for range times {
			at.Log(0, msg)
		}
		lines, dropped := at.TakeLog()
		if len(lines) > at.Limits.LogBytes || bytes.Count(lines, []byte("\n"))+int(dropped) != times {
			t.Errorf("%d bytes, %d lines and %d dropped of %d", len(lines), bytes.Count(lines, []byte("\n")), dropped, times)
		}
		for line := range strings.Lines(string(lines)) {
			checkSafe(t, strings.TrimSuffix(line, "\n"))
		}
	})
}
