package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

// BenchmarkManyLookAtOne is one transition in which 1,000 steps look at the same output of 60 KB.
func BenchmarkManyLookAtOne(b *testing.B) {
	w := jobhost.Workflow{Steps: []jobhost.Step{work("a")}}
	for i := range 1000 {
		w.Steps = append(w.Steps, with(work(fmt.Sprint("b", i), "a"), func(s *jobhost.Step) { s.When = "steps.a.output.n > 3" }))
	}
	output := `{"n":5,"list":[` + strings.Repeat(`{"name":"x","v":12},`, 3000) + `1]}`
	s := onStage(b, w, "{}").start()
	before := s.record
	for b.Loop() {
		s.record = before
		s.succeed("a", output)
	}
}
