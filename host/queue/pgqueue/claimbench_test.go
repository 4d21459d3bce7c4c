package pgqueue_test

import (
	"fmt"
	"testing"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/cputime"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// BenchmarkClaim claims 100,000 open tasks in pages, as a host does when it begins to lead.
func BenchmarkClaim(b *testing.B) {
	const tasks, page = 100_000, 65_536
	server := postgres.Start(b)
	s := openOn(b, server, server.Schema(b))
	c := newCaller(s)
	for i := range tasks / 10_000 {
		if err := c.do(&record.Submit{Job: newSpec(fmt.Sprint(i), "w", func(j *record.JobSpec) { j.Tasks = 10_000 })}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	own, theirs := cputime.Used(), server.CPU(b)
	for b.Loop() {
		claimed, after := 0, record.Place{}
		for {
			list, err := s.Claim(b.Context(), "w", after, page)
			if err != nil {
				b.Fatal(err)
			}
			if claimed += len(list); len(list) < page {
				break
			}
			after = list[len(list)-1].Place
		}
		if claimed != tasks {
			b.Fatalf("%d tasks", claimed)
		}
	}
	b.ReportMetric(float64((cputime.Used()-own).Milliseconds())/float64(b.N), "own-cpu-ms/op")
	b.ReportMetric(float64((server.CPU(b)-theirs).Milliseconds())/float64(b.N), "server-cpu-ms/op")
}
