package api

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
)

// gauge counts what is in use of something limited.
type gauge struct {
	used  atomic.Int64
	limit int64
}

// take takes n, unless that is more than there is.
func (g *gauge) take(n int64) bool {
	if g.used.Add(n) <= g.limit {
		return true
	}
	g.used.Add(-n)
	return false
}

func (g *gauge) free(n int64) { g.used.Add(-n) }

// takeOne takes one, or returns an error that names what there are too many of.
func (g *gauge) takeOne(what string) error {
	if g.take(1) {
		return nil
	}
	return &jobhost.Error{
		Code:       jobhost.CodeExhausted,
		Message:    fmt.Sprintf("there are %d %s already", g.limit, what),
		Hint:       "try again later, or share one of them",
		RetryAfter: time.Second,
	}
}
