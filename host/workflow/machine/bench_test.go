package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost/host/workflow/machine"
)

// nobody is an Evaluator and a Reader of a workflow without expressions.
type nobody struct {
	machine.Evaluator
	machine.Reader
}

// network returns a machine of n steps with edges as before says.
func network(tb testing.TB, n int, before func(i int) []int32) *machine.Machine {
	tb.Helper()
	g := &machine.Graph{Digest: 1, Steps: make([]machine.Node, n), Output: machine.None}
	for i := range n {
		s := &g.Steps[i]
		s.Name, s.Fallback, s.FallbackOf = fmt.Sprint("step", i), machine.None, machine.None
		s.Needs = before(i)
		for _, j := range s.Needs {
			g.Steps[j].Next = append(g.Steps[j].Next, int32(i))
		}
	}
	c, err := machine.New(g, nobody{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// drive runs a workflow in which jobs end in the order in which they began, or
// the last first, and returns how many events it took and the largest record.
func drive(tb testing.TB, c *machine.Machine, lastFirst bool) (events, size int) {
	tb.Helper()
	at := time.Unix(1e9, 0)
	e := machine.Event{What: machine.Started, At: at}
	var record []byte
	var open []machine.Run
	for {
		out, err := c.Advance("wf-0198b6a4-37a5-7c1e-9a3e-5d0c7e6f1a2b", record, &e, nobody{})
		if err != nil || out.Record == nil {
			tb.Fatal(err)
		}
		events++
		record = out.Record
		size = max(size, len(record))
		for i := range out.Submit {
			open = append(open, out.Submit[i].Run)
		}
		if out.End != nil {
			return events, size
		}
		next := 0
		if lastFirst {
			next = len(open) - 1
		}
		e = machine.Event{What: machine.JobSucceeded, At: at, Run: open[next]}
		if lastFirst {
			open = open[:next]
		} else {
			open = open[1:]
		}
	}
}

func chain(i int) []int32 {
	if i == 0 {
		return nil
	}
	return []int32{int32(i - 1)}
}

// join is a step, n beside each other that need it, and one that needs them all.
func join(n int) func(int) []int32 {
	return func(i int) []int32 {
		switch i {
		case 0:
			return nil
		case n + 1:
			list := make([]int32, n)
			for k := range list {
				list[k] = int32(k + 1)
			}
			return list
		}
		return []int32{0}
	}
}

// layers are two levels of n steps, each of the second of which needs all of the first.
func layers(n int) func(int) []int32 {
	return func(i int) []int32 {
		if i < n {
			return nil
		}
		list := make([]int32, n)
		for k := range list {
			list[k] = int32(k)
		}
		return list
	}
}

// BenchmarkAdvance runs whole workflows: an event takes ns/event.
func BenchmarkAdvance(b *testing.B) {
	for _, bc := range []struct {
		name      string
		steps     int
		before    func(int) []int32
		lastFirst bool
	}{
		{"chain of 5", 5, chain, false},
		{"chain of 50", 50, chain, false},
		{"chain of 10000", 10_000, chain, false},
		{"join of 100", 102, join(100), false},
		{"join of 9998, first in first out", 10_000, join(9998), false},
		{"join of 9998, last first", 10_000, join(9998), true},
		{"500 that need 500, first in first out", 1000, layers(500), false},
		{"500 that need 500, last first", 1000, layers(500), true},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c := network(b, bc.steps, bc.before)
			b.ReportAllocs()
			events, size := 0, 0
			for b.Loop() {
				n, most := drive(b, c, bc.lastFirst)
				events, size = events+n, max(size, most)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
			b.ReportMetric(float64(size), "record-bytes")
		})
	}
}
