package queue

import (
	"sync"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/breaker"
)

// sharedBreaker is a circuit breaker that workers and jobs of one or several lanes share.
type sharedBreaker struct {
	*breaker.Breaker
	key string

	mu       sync.Mutex         // protects lanes and jobLanes
	lanes    map[*lane]struct{} // of workers that have it
	jobLanes map[*lane]struct{} // with tasks of jobs that have it

	saving sync.Mutex // held from a look at the state to its place in the store; protects saved
	saved  string
}

// passage is a task's passage of a breaker. The zero passage passed none.
type passage struct {
	breaker.Passage
	of *sharedBreaker // whom to judge; nil = nobody
}

// verdictOf is what an outcome says. Input that can never succeed, and a "no" by
// the worker's own rules, are about the job and nothing else.
func verdictOf(o *jobhost.Outcome) breaker.Verdict {
	switch {
	case o.Kind == jobhost.OutcomeSucceeded:
		return breaker.WentWell
	case o.Kind == jobhost.OutcomeFailed && o.Failure.Category.Retryable():
		return breaker.WentWrong
	}
	return breaker.None
}
