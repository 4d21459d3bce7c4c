package api

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/budget"
)

// takeOne takes one of a budget, or returns an error that names what there are
// too many of.
func takeOne(b *budget.Budget, what string) error {
	if b.Take(1) {
		return nil
	}
	return &jobhost.Error{
		Code:       jobhost.CodeExhausted,
		Message:    fmt.Sprintf("there are %d %s already", b.Limit, what),
		Hint:       "try again later, or share one of them",
		RetryAfter: time.Second,
	}
}
