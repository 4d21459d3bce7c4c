package preflight_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasm/preflight"
)

// The environment of this test: how many mutants TestMutants tries, and, in
// its children, from which to which.
const (
	envMutants = "JOBHOST_MUTANTS"
	envBatch   = "JOBHOST_MUTANTS_BATCH"
)

func TestMain(m *testing.M) {
	if batch := os.Getenv(envBatch); batch != "" {
		if err := tryBatch(context.Background(), batch); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// originals are the modules that mutants are made of; those from large on take
// a second to compile.
func originals() (modules [][]byte, large int, err error) {
	modules = [][]byte{guests.Noop, guests.Echo, guests.Outcomes, guests.Exit, guests.Init, guests.InitSpin, guests.InitTrap}
	paths, err := filepath.Glob("../../../plugins/examples/*/*.wasm")
	if err != nil {
		return nil, 0, err
	}
	var slow [][]byte
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, 0, err
		}
		if len(b) > 1<<20 {
			slow = append(slow, b)
		} else {
			modules = append(modules, b)
		}
	}
	return append(modules, slow...), len(modules), nil
}

// oneInLarge is how rarely a mutant is made of a large module.
const oneInLarge = 200

// mutant makes the mutant of a number.
func mutant(n int, modules [][]byte, large int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	from := modules[:large]
	if n%oneInLarge == oneInLarge-1 && large < len(modules) {
		from = modules[large:]
	}
	return mutate(rng, from[rng.IntN(len(from))], modules[rng.IntN(large)])
}

// tally is what became of mutants.
type tally struct {
	Refused, Invalid, Panics, Compiled, Ran int
	Slowest                                 time.Duration // of the mutants of small modules
	SlowestMutant                           int
}

// tryBatch tries mutants in this process, which may die of it. It prints the
// number of each before, and a tally at the end.
func tryBatch(ctx context.Context, batch string) error {
	var from, to int
	if _, err := fmt.Sscanf(batch, "%d-%d", &from, &to); err != nil {
		return err
	}
	modules, large, err := originals()
	if err != nil {
		return err
	}
	var sum tally
	r := newRuntime(ctx)
	for n := from; n < to; n++ {
		fmt.Println(n)
		b := mutant(n, modules, large)
		start := time.Now()
		sum.try(ctx, r, b)
		if d := time.Since(start); d > sum.Slowest && n%oneInLarge != oneInLarge-1 {
			sum.Slowest, sum.SlowestMutant = d, n
		}
	}
	fmt.Printf("%d %d %d %d %d %d %d done\n", sum.Refused, sum.Invalid, sum.Panics, sum.Compiled, sum.Ran, sum.Slowest, sum.SlowestMutant)
	return r.Close(ctx)
}

// runFor is how long the start function of a mutant may run.
const runFor = 20 * time.Millisecond

func (s *tally) try(ctx context.Context, r wazero.Runtime, b []byte) {
	if _, err := preflight.Check(b, preflight.Limits{MemoryPages: 1024}); err != nil {
		s.Refused++
		return
	}
	compiled, panicked := compile(ctx, r, b)
	switch {
	case panicked != nil:
		s.Panics++
	case compiled == nil:
		s.Invalid++
	default:
		s.Compiled++
		ctx, cancel := context.WithTimeout(ctx, runFor)
		defer cancel()
		instance, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
		if err == nil {
			s.Ran++
			_ = instance.Close(ctx)
		}
		_ = compiled.Close(ctx)
	}
}

// TestMutants damages modules in many ways and shows that nothing of it ends
// the process. Each batch is tried by a child of its own, so that a death is
// seen; the mutant is kept then. make fuzz-modules tries 20,000.
func TestMutants(t *testing.T) {
	t.Parallel()
	total, batch := 300, 300
	if text := os.Getenv(envMutants); text != "" {
		var err error
		if total, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		batch = 1000
	}
	var sum tally
	for from := 0; from < total; from += batch {
		got, err := runBatch(t, from, min(from+batch, total))
		if err != nil {
			t.Error(err)
		}
		sum.Refused += got.Refused
		sum.Invalid += got.Invalid
		sum.Panics += got.Panics
		sum.Compiled += got.Compiled
		sum.Ran += got.Ran
		if got.Slowest > sum.Slowest {
			sum.Slowest, sum.SlowestMutant = got.Slowest, got.SlowestMutant
		}
	}
	if sum.Slowest > 10*time.Second {
		t.Errorf("mutant %d took %s", sum.SlowestMutant, sum.Slowest)
	}
	t.Logf("%d mutants: %d refused before the compiler, %d by it, in %d it panicked, %d compiled, %d of them ran; the slowest, %d, took %s",
		total, sum.Refused, sum.Invalid, sum.Panics, sum.Compiled, sum.Ran, sum.SlowestMutant, sum.Slowest.Round(time.Millisecond))
}

// runBatch runs a child.
func runBatch(t *testing.T, from, to int) (tally, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return tally{}, err
	}
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d-%d", envBatch, from, to))
	var stderr bytes.Buffer
	child.Stderr = &stderr
	out, err := child.Output()
	var last string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		last = lines.Text()
	}
	var sum tally
	if _, scanned := fmt.Sscanf(last, "%d %d %d %d %d %d %d done", &sum.Refused, &sum.Invalid, &sum.Panics, &sum.Compiled, &sum.Ran, &sum.Slowest, &sum.SlowestMutant); err == nil && scanned == nil {
		return sum, nil
	}
	n, wrong := strconv.Atoi(last)
	if wrong != nil {
		return tally{}, fmt.Errorf("the child for %d to %d: %w\n%s", from, to, errors.Join(err, wrong), stderr.Bytes())
	}
	path, keepErr := keep(n)
	first, _, _ := strings.Cut(stderr.String(), "\n")
	return tally{}, errors.Join(fmt.Errorf("mutant %d, kept in %s, ended the process: %w: %s", n, path, err, first), keepErr)
}

// keep writes a mutant to a file that stays.
func keep(n int) (string, error) {
	modules, large, err := originals()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", fmt.Sprintf("mutant-%d-*.wasm", n))
	if err != nil {
		return "", err
	}
	_, err = f.Write(mutant(n, modules, large))
	return f.Name(), errors.Join(err, f.Close())
}
