package plan

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// large returns workflows of the largest size by their form.
func large() map[string]jobhost.Workflow {
	const n = jobhost.MaxSteps
	random := rand.New(rand.NewPCG(1, 2))
	named := func(name string, needs func(i int) []string) jobhost.Workflow {
		w := jobhost.Workflow{Name: name, Steps: make([]jobhost.Step, n)}
		for i := range w.Steps {
			w.Steps[i] = jobhost.Step{Name: step(i), Worker: "parser", Needs: needs(i)}
		}
		return w
	}
	pick := func(i, count int) []string {
		seen := map[int]bool{}
		for range min(i, count) {
			seen[random.IntN(i)] = true
		}
		var names []string
		for j := range seen {
			names = append(names, step(j))
		}
		return names
	}
	chain := func(i int) []string {
		if i == 0 {
			return nil
		}
		return []string{step(i - 1)}
	}
	all := map[string]jobhost.Workflow{
		"chain": named("chain", chain),
		"fan-in": named("fan-in", func(i int) []string {
			if i < n-1 {
				return nil
			}
			return pick(n-1, 40*n)
		}),
		"random": named("random", func(i int) []string { return pick(i, 10) }),
		"dense":  named("dense", func(i int) []string { return pick(i, 100) }),
		"circle": named("circle", func(i int) []string { return []string{step((i + n - 1) % n)} }),
	}
	conditions := named("conditions", chain)
	for i := range conditions.Steps {
		if i > 0 {
			conditions.Steps[i].When = `steps.s0.output.n > 1`
		}
	}
	all["conditions"] = conditions
	different := named("different", chain)
	for i := range different.Steps {
		if i > 0 {
			different.Steps[i].When = fmt.Sprintf(`steps.s%d.output.n > %d`, i/2, i)
		}
	}
	all["different"] = different
	return all
}

func step(i int) string { return "s" + strconv.Itoa(i) }

func TestLargestWorkflowsAreQuick(t *testing.T) {
	workflows := large()
	delete(workflows, "different") // it measures CEL, and takes long with the race detector
	for name, w := range workflows {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := Compile(w, Env{})
			if (err != nil) != (name == "circle") {
				t.Fatal(err)
			}
			// Ten times what is meant to be: the race detector and others take their part.
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestTooLargeWorkflowsAreRefused(t *testing.T) {
	t.Parallel()
	many := jobhost.Workflow{Name: "many", Steps: make([]jobhost.Step, jobhost.MaxSteps+1)}
	needs := make([]string, jobhost.MaxNeeds+1)
	dense := jobhost.Workflow{Name: "dense", Steps: []jobhost.Step{{Name: "a", Worker: "w", Needs: needs}}}
	long := jobhost.Workflow{Name: "long", Steps: []jobhost.Step{{Name: "a", Worker: "w", Input: strings.Repeat("x", jobhost.MaxWorkflowBytes)}}}
	for _, w := range []jobhost.Workflow{many, dense, long} {
		if _, err := Compile(w, Env{}); jobhost.CodeOf(err) != jobhost.CodeTooLarge {
			t.Errorf("%s: got %.200v", w.Name, err)
		}
	}
	if _, err := Decode(make([]byte, jobhost.MaxWorkflowBytes+1)); jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCompile(b *testing.B) {
	for name, w := range large() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Compile(w, Env{})
			}
		})
	}
}
