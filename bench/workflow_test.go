package bench

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/workflow/plan"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// chainOf is a workflow whose steps follow each other.
func chainOf(n int) *jobhost.Workflow {
	w := &jobhost.Workflow{Name: "chain"}
	for i := range n {
		s := jobhost.Step{Name: fmt.Sprintf("s%d", i), Worker: "noop"}
		if i > 0 {
			s.Needs = []string{fmt.Sprintf("s%d", i-1)}
		}
		w.Steps = append(w.Steps, s)
	}
	return w
}

// endings counts the workflows that end.
type endings struct{ ended chan string }

func (e *endings) hear(event jobhost.Event) {
	if event.Kind == jobhost.EventWorkflowEnded {
		e.ended <- event.Workflow
	}
}

func start(b *testing.B, h jobhost.Server, s jobhost.WorkflowStart) string {
	b.Helper()
	r, err := h.StartWorkflow(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	return r.ID
}

// BenchmarkWorkflows measures chains of five no-op Wasm steps from start to durable end, with
// some in flight.
func BenchmarkWorkflows(b *testing.B) {
	for _, flight := range []int{1, 256} {
		b.Run(fmt.Sprintf("inflight=%d", flight), func(b *testing.B) {
			var left, commits atomic.Int64
			var flying sync.WaitGroup
			next := make(chan struct{}, flight)
			h := runHost(b, func(e jobhost.Event) {
				if e.Kind == jobhost.EventWorkflowEnded {
					next <- struct{}{}
				}
			}, sqlitedb.Observer{Commit: func(int, time.Duration) { commits.Add(1) }})
			w := chainOf(5)
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			commits.Store(0)
			for range flight {
				flying.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := h.StartWorkflow(b.Context(), jobhost.WorkflowStart{Definition: w}); err != nil {
							b.Error(err)
							return
						}
						<-next
					}
				})
			}
			flying.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "workflows/s")
			b.ReportMetric(float64(commits.Load())/float64(5*b.N), "commits/step")
		})
	}
}

// BenchmarkFanOut measures a step of 10,000 tasks with the collection of what they return.
func BenchmarkFanOut(b *testing.B) {
	e := &endings{ended: make(chan string, 1)}
	h := runHost(b, e.hear, sqlitedb.Observer{})
	input := "[" + strings.Repeat("1,", 9_999) + "1]"
	w := &jobhost.Workflow{Name: "fan", Steps: []jobhost.Step{
		{Name: "each", Worker: "noop", FanOut: "input"}, {Name: "all", Worker: "noop", Needs: []string{"each"}},
	}}
	for b.Loop() {
		start(b, h, jobhost.WorkflowStart{Definition: w, Input: []byte(input)})
		<-e.ended
	}
}

// BenchmarkOpenWorkflows measures the memory of workflows that wait for a signal.
func BenchmarkOpenWorkflows(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		h := runHost(b, nil, sqlitedb.Observer{})
		w := &jobhost.Workflow{Name: "waits", Steps: []jobhost.Step{{Name: "go", Signal: "go"}, {Name: "then", Worker: "noop", Needs: []string{"go"}}}}
		start(b, h, jobhost.WorkflowStart{Definition: w})
		before := heap()
		var left atomic.Int64
		left.Store(n - 1)
		var starting sync.WaitGroup
		for range 256 {
			starting.Go(func() {
				for left.Add(-1) >= 0 {
					if _, err := h.StartWorkflow(b.Context(), jobhost.WorkflowStart{Definition: w}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		starting.Wait()
		b.ReportMetric(float64(heap()-before)/n, "B/workflow")
	}
}

func heap() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// BenchmarkPlan measures how long it takes to check 10,000 steps.
func BenchmarkPlan(b *testing.B) {
	wide := &jobhost.Workflow{Name: "wide"}
	for i := range 10_000 {
		s := jobhost.Step{Name: fmt.Sprintf("s%d", i), Worker: "noop"}
		for k := 1; k <= 10 && k <= i; k++ {
			s.Needs = append(s.Needs, fmt.Sprintf("s%d", i-k))
		}
		wide.Steps = append(wide.Steps, s)
	}
	conditions := chainOf(10_000)
	for i := range conditions.Steps {
		conditions.Steps[i].When = fmt.Sprintf("input.n > %d", i)
	}
	for name, w := range map[string]*jobhost.Workflow{"edges=100000": wide, "conditions=10000": conditions} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := plan.Compile(*w, plan.Env{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
