package rig_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The environment of these tests: how many modules are tried, from which on, and, in
// children, what they try.
const (
	envCount = "JOBHOST_RIG"
	envFirst = "JOBHOST_RIG_FIRST"
	envChild = "JOBHOST_RIG_CHILD"
)

// TestMain runs a batch instead of the tests if it is a child: the output of a
// faulty compiler may crash the process.
func TestMain(m *testing.M) {
	if batch := os.Getenv(envChild); batch != "" {
		if err := runBatch(context.Background(), os.Stdout, batch); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// addressSpace is how much address space a child may use.
const addressSpace = 16 << 30

// worker tries the module with a given number.
type worker interface {
	try(ctx context.Context, n int) report
	close(ctx context.Context) error
}

// workers are the kinds of batches.
var workers = map[string]func(context.Context) worker{
	"programs": newPrograms, "damaged": newDamaged, "mutants": newMutants,
}

// report is the result for one module, as the child writes it.
type report struct {
	N     int
	Count map[string]int `json:",omitempty"`
	Wrong string         `json:",omitempty"` // the fault
	Load  time.Duration  `json:",omitempty"` // how long loading it took
	Usual time.Duration  `json:",omitempty"` // for a slow one: how long loading its original took
	Late  time.Duration  `json:",omitempty"` // how late the process was during that
	Done  bool           `json:",omitempty"` // false = the child is about to try it
}

// runBatch is a child: it writes two lines about each module, before and after.
func runBatch(ctx context.Context, w io.Writer, batch string) error {
	var from, to int
	kind, numbers, _ := strings.Cut(batch, ":")
	if _, err := fmt.Sscanf(numbers, "%d-%d", &from, &to); err != nil || workers[kind] == nil {
		return fmt.Errorf("batch %q: %w", batch, err)
	}
	if err := limitAddressSpace(addressSpace); err != nil {
		return err
	}
	work := workers[kind](ctx)
	out := json.NewEncoder(w)
	var err error
	for n := from; n < to && err == nil; n++ {
		if err = out.Encode(report{N: n}); err == nil {
			r := work.try(ctx, n)
			r.N, r.Done = n, true
			err = out.Encode(r)
		}
	}
	return errors.Join(err, work.close(ctx))
}

// slowest is how long one module may take, including its reduction, and hung
// how long one may take that is only run.
const (
	slowest = 2 * time.Minute
	hung    = 30 * time.Second
)

// inChildren tries a number of modules and fails for each that is wrong, or
// crashes its process. It returns how often each result occurred.
func inChildren(t *testing.T, kind string, first, total, batch int) map[string]int {
	t.Helper()
	sum := map[string]int{}
	eachInChildren(t, kind, first, total, batch, func(r report) {
		for what, n := range r.Count {
			sum[what] += n
		}
	})
	return sum
}

// eachInChildren does the same, and passes on the reports.
func eachInChildren(t *testing.T, kind string, first, total, batch int, each func(report)) {
	for from := first; from < first+total; {
		to := min(from+batch, first+total)
		last, err := runChild(t, kind, from, to, each)
		switch {
		case err == nil:
			from = to
		case last < from:
			t.Errorf("a child: %v", err)
			return
		default:
			t.Errorf("%s %d ended its process: %v", kind, last, err)
			from = last + 1
		}
	}
}

// runChild runs a child and passes on its reports. It returns the last module that
// it began.
func runChild(t *testing.T, kind string, from, to int, each func(report)) (last int, err error) {
	patience := slowest
	if kind == "mutants" {
		patience = hung
	}
	self, err := os.Executable()
	if err != nil {
		return -1, err
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d-%d", envChild, kind, from, to))
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return -1, err
	}
	if err := child.Start(); err != nil {
		return -1, err
	}
	hanging := time.AfterFunc(patience, func() { cancel(errors.New("it hangs")) })
	defer hanging.Stop()
	last = -1
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		hanging.Reset(patience)
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			break
		}
		last = r.N
		each(r)
		if r.Wrong != "" {
			t.Errorf("%s, module %d: %s", kind, r.N, r.Wrong)
		}
	}
	err = errors.Join(child.Wait(), context.Cause(ctx))
	if err != nil {
		text := stderr.String()
		err = fmt.Errorf("%w\n%s", err, text[:min(len(text), 2000)])
	}
	return last, err
}

// number returns a number of the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
