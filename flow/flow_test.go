package flow

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
)

func TestMistakesAreToldTogether(t *testing.T) {
	t.Parallel()
	b := New("x").Add(Worker("a", "w"), Worker("a", "w")).Remove("b").Update("c", func(*jobhost.Step) {})
	_, err := b.Workflow()
	for _, want := range []string{`"a" is there already`, `no step "b" to remove`, `no step "c" to update`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if jobhost.CodeOf(err) != jobhost.CodeInvalid {
		t.Errorf("got code %s", jobhost.CodeOf(err))
	}
}

func TestCopiesShareNothing(t *testing.T) {
	t.Parallel()
	jitter, priority := 0.5, jobhost.High
	given := jobhost.Step{
		Name: "a", Worker: "w", Needs: []string{"z"}, Labels: map[string]string{"k": "v"}, Priority: &priority,
		Retry: &jobhost.StepRetry{Jitter: &jitter}, Breaker: &jobhost.StepBreaker{Key: "k"},
	}
	b := New("x").Add(given)
	c := b.Clone().Update("a", func(s *jobhost.Step) {
		s.Needs[0], s.Labels["k"], *s.Priority, *s.Retry.Jitter, s.Breaker.Key = "y", "u", jobhost.Low, 1, "l"
	})
	if _, err := c.Workflow(); err != nil {
		t.Fatal(err)
	}
	w, _ := b.Workflow()
	s := w.Steps[0]
	if s.Needs[0] != "z" || s.Labels["k"] != "v" || *s.Priority != jobhost.High || *s.Retry.Jitter != 0.5 || s.Breaker.Key != "k" || jitter != 0.5 {
		t.Errorf("got %+v", s)
	}
}

func TestNamesChangeEverywhere(t *testing.T) {
	t.Parallel()
	w, err := New("x").Chain(Worker("a", "w"), Worker("b", "w")).
		Update("b", func(s *jobhost.Step) { s.Fallback = "c" }).Add(Worker("c", "w")).
		Update("a", func(s *jobhost.Step) { s.Name = "first" }).Update("c", func(s *jobhost.Step) { s.Name = "spare" }).Workflow()
	if err != nil || w.Steps[1].Needs[0] != "first" || w.Steps[1].Fallback != "spare" {
		t.Errorf("got %+v, %v", w.Steps, err)
	}
}
