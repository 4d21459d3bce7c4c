package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// comparison is a job for both sides.
type comparison struct {
	name   string
	size   int // of the input, in bytes
	budget float64
	// theirs is an Extism plugin; ours may be the same one.
	theirs, ours job
}

// job is an entry of a plugin.
type job struct{ module, entry string }

// The plugins.
const (
	probe   = "runtime/extismabi/testdata/probe.wasm" // in C, without a plugin kit
	native  = "plugins/examples/vowels/vowels.wasm"   // in C, for jobhost's own ABI
	counter = "count_vowels.wasm"                     // of go-sdk's tests, with a plugin kit
	nothing = "noop.wasm"
)

func comparisons() []comparison {
	same := func(name, module, entry string, size int, budget float64) comparison {
		return comparison{name, size, budget, job{module, entry}, job{module, entry}}
	}
	list := []comparison{
		same("probe, no-op", probe, "noop", 0, 12),
		same("probe, vowels", probe, "vowels", 1<<10, 8),
		same("probe, vowels", probe, "vowels", 64<<10, 0),
		same("go-sdk's noop", nothing, "run_test", 0, 12),
		same("go-sdk's count_vowels", counter, "count_vowels", 0, 0),
		same("go-sdk's count_vowels", counter, "count_vowels", 1<<10, 8),
	}
	for _, b := range []struct {
		size   int
		budget float64
	}{{64, 20}, {1 << 10, 10}, {64 << 10, 5}} {
		list = append(list, comparison{"native vowels, probe's", b.size, b.budget, job{probe, "vowels"}, job{native, "jh_run"}})
	}
	return list
}

// result is the result of a comparison.
type result struct{ theirs, ours, ratio figures }

// measure alternates between the sides, so that other load on the machine
// affects both, and checks first that they do the same.
func (c *comparison) measure(ctx context.Context, m *modules, rounds int, turn time.Duration) (*result, error) {
	input := text(c.size)
	theirs, err := m.openTheirs(ctx, c.theirs, input)
	if err != nil {
		return nil, fmt.Errorf("go-sdk: %w", err)
	}
	defer theirs.close(ctx)
	ours, err := m.openOurs(ctx, c.ours, input)
	if err != nil {
		return nil, fmt.Errorf("jobhost: %w", err)
	}
	defer ours.close(ctx)
	if err := agree(theirs, ours); err != nil {
		return nil, err
	}
	sides := [2]side{theirs, ours}
	var counts [2]int
	for n, s := range sides {
		if counts[n], err = calibrate(s, turn); err != nil {
			return nil, err
		}
	}
	var took [2][]float64
	var ratios []float64
	for range rounds {
		for n, s := range sides {
			per, err := perCall(s, counts[n])
			if err != nil {
				return nil, err
			}
			took[n] = append(took[n], per)
		}
		ratios = append(ratios, last(took[0])/last(took[1]))
	}
	return &result{newFigures(took[0], duration), newFigures(took[1], duration), newFigures(ratios, times)}, nil
}

// agree checks that both sides return the same, except for spaces and how they
// name and frame a count.
func agree(theirs, ours side) error {
	a, err := theirs.call()
	if err != nil {
		return fmt.Errorf("go-sdk: %w", err)
	}
	first := firstNumber(a) // before the next call reuses its memory
	b, err := ours.call()
	if err != nil {
		return fmt.Errorf("jobhost: %w", err)
	}
	if second := firstNumber(b); first != second {
		return fmt.Errorf("go-sdk counted %q, jobhost %q", first, second)
	}
	return nil
}

// calibrate returns how many calls fill a turn, after a warm-up turn.
func calibrate(s side, turn time.Duration) (int, error) {
	n := 0
	for began := time.Now(); time.Since(began) < turn; n++ {
		if _, err := s.call(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// perCall is how long each of n calls takes, in nanoseconds. It begins without
// garbage, which would be the other side's.
func perCall(s side, n int) (float64, error) {
	runtime.GC()
	began := time.Now()
	for range n {
		if _, err := s.call(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(began).Nanoseconds()) / float64(n), nil
}
