package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// figures summarize the rounds of one side.
type figures struct {
	median, least, most float64
	show                func(float64) string
}

func newFigures(values []float64, show func(float64) string) figures {
	sorted := slices.Sorted(slices.Values(values))
	return figures{sorted[len(sorted)/2], sorted[0], last(sorted), show}
}

// String returns the median and the range.
func (f figures) String() string {
	return fmt.Sprintf("%s (%s–%s)", f.show(f.median), f.show(f.least), f.show(f.most))
}

// duration formats nanoseconds.
func duration(ns float64) string {
	d := time.Duration(ns)
	for _, unit := range []time.Duration{time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.Round(10 * time.Nanosecond).String()
}

func times(x float64) string { return fmt.Sprintf("%.1f×", x) }

func last(values []float64) float64 { return values[len(values)-1] }

// firstNumber returns the first number of a text, "" if there is none.
func firstNumber(text []byte) string {
	digit := func(r rune) bool { return r >= '0' && r <= '9' }
	s := string(text)
	if s = s[max(strings.IndexFunc(s, digit), 0):]; s == "" || !digit(rune(s[0])) {
		return ""
	}
	return s[:len(s)-len(strings.TrimLeftFunc(s, digit))]
}

// printMachine prints what is measured and where.
func printMachine(out io.Writer) {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, after, ok := strings.Cut(string(info), "model name\t: "); ok {
			model, _, _ = strings.Cut(after, "\n")
		}
	}
	fmt.Fprintf(out, "%s, %d CPUs, %s/%s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path == "github.com/tetratelabs/wazero" || m.Path == "github.com/extism/go-sdk" {
				fmt.Fprintf(out, ", %s %s", m.Path[strings.LastIndex(m.Path, "/")+1:], m.Version)
			}
		}
	}
	fmt.Fprintln(out)
	printLoad(out, "before")
}

// printLoad prints how busy the machine is, if known: figures of a busy one are
// worth less.
func printLoad(out io.Writer, when string) {
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(out, "load %s: %s\n", when, strings.Join(strings.Fields(string(load))[:3], " "))
	}
}
