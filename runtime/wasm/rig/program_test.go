package rig_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost/runtime/wasm/rig"
)

// TestPrograms compares generated programs on the interpreter, on the compiler,
// and rewritten on the compiler. What differs when it is rewritten is a failure;
// what differs only as it is, is the compiler's fault and counted.
// make fuzz-modules tries 20,000.
func TestPrograms(t *testing.T) {
	t.Parallel()
	total := number(t, envCount, 120)
	start := time.Now()
	sum := inChildren(t, "programs", number(t, envFirst, 0), total, 1000)
	if sum["calls"] < 4*total || sum["trapped"] > sum["calls"]/2 {
		t.Errorf("the programs do too little: %v", sum)
	}
	t.Logf("%d programs in %s: %v", total, time.Since(start).Round(time.Second), sum)
}

// programs tries generated programs.
type programs struct {
	bench    *rig.Bench
	profiles []rig.Profile
	reduced  int
}

func newPrograms(ctx context.Context) worker {
	return &programs{bench: rig.NewBench(ctx), profiles: rig.Profiles()}
}

func (p *programs) close(ctx context.Context) error { return p.bench.Close(ctx) }

// oneInLarge is how rarely a program is a large one: they take ten times as long.
const oneInLarge = 40

// profile returns the profile of a program; the last of them is for large ones.
func (p *programs) profile(n int) rig.Profile {
	last := len(p.profiles) - 1
	if n%oneInLarge == oneInLarge-1 {
		return p.profiles[last]
	}
	return p.profiles[n%last]
}

// mostReduced is how many programs a child reduces.
const mostReduced = 3

func (p *programs) try(ctx context.Context, n int) report {
	profile, seed := p.profile(n), uint64(n)
	program, err := rig.Generate(seed, profile, nil)
	if err != nil {
		return report{Wrong: err.Error()}
	}
	o, err := p.bench.Run(ctx, program.Wasm, seed)
	if err != nil {
		return report{Wrong: fmt.Sprintf("the program can't be run: %v\n%s", err, rig.Text(program.Wasm))}
	}
	r := report{Count: map[string]int{"calls": o.Calls, "trapped": o.Traps}}
	if o.Plain != "" && o.Rewritten == "" {
		r.Count["only wrong as it is, profile "+profile.Name]++
	}
	if o.Rewritten == "" {
		return r
	}
	r.Count["wrong, profile "+profile.Name]++
	r.Wrong = fmt.Sprintf("profile %s: %s", profile.Name, o.Rewritten)
	if p.reduced++; p.reduced <= mostReduced {
		r.Wrong += "\nreduced:\n" + p.reduce(ctx, program, profile, seed)
	}
	return r
}

// reduce returns a smaller program that is wrong too.
func (p *programs) reduce(ctx context.Context, program *rig.Program, profile rig.Profile, seed uint64) string {
	last, why := program.Wasm, ""
	rig.Reduce(program.Nodes, func(cut map[int]bool) bool {
		smaller, err := rig.Generate(seed, profile, cut)
		if err != nil {
			return false
		}
		o, err := p.bench.Run(ctx, smaller.Wasm, seed)
		if err != nil || o.Rewritten == "" {
			return false
		}
		last, why = smaller.Wasm, o.Rewritten
		return true
	})
	return why + "\n" + rig.Text(last)
}
