package queue

import "github.com/jobhost/jobhost"

// Refuse makes the queue refuse new jobs with an error from now on, while all
// that it holds goes on; nil = it takes them again. Jobs that are there already
// are found as ever.
func (q *Queue) Refuse(reason *jobhost.Error) { q.refusal.Store(reason) }

// Refusal returns why new jobs are refused; nil = they aren't.
func (q *Queue) Refusal() *jobhost.Error { return q.refusal.Load() }

// Takes returns why a worker takes no job now; nil = it does.
func (q *Queue) Takes(worker string) error {
	l := q.lanes.of(worker)
	if l == nil || l.parked.Load() {
		return q.noWorker(worker)
	}
	if refusal := q.refusal.Load(); refusal != nil {
		return refusal
	}
	if err := l.accept(1); err != nil {
		return err
	}
	l.vacate(1)
	return nil
}
