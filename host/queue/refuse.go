package queue

import "github.com/jobhost/jobhost"

// Refuse makes the queue refuse new jobs with an error from now on, while all
// that it holds goes on; nil = it takes them again. Jobs that are there already
// are found as ever.
func (q *Queue) Refuse(reason *jobhost.Error) { q.refusal.Store(reason) }

// Refusal returns why new jobs are refused; nil = they aren't.
func (q *Queue) Refusal() *jobhost.Error { return q.refusal.Load() }
