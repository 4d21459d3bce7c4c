package main

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// ledger is kept outside the systems: which jobs were acknowledged, have run
// and have ended, and when. Jobs are numbered from 0. It is safe for concurrent
// use.
type ledger struct {
	start time.Time
	jobs  []entry
	alien atomic.Int64 // runs and ends of jobs that were never submitted
	phase atomic.Pointer[phase]
}

// entry is a job; times are in nanoseconds since the start, 0 = not yet.
type entry struct {
	began, acked, ran, ended atomic.Int64
	runs, ends               atomic.Int32
}

// phase is a part of a measurement: the jobs from first up to, but not including, last.
type phase struct {
	first, last int
	left        atomic.Int64
	done        chan struct{} // closed when all have ended
}

func newLedger(jobs int) *ledger {
	return &ledger{start: time.Now(), jobs: make([]entry, jobs)}
}

// now is the time since the start in nanoseconds, at least 1.
func (l *ledger) now() int64 { return max(int64(time.Since(l.start)), 1) }

// begin starts the phase of the next n jobs, beginning with first.
func (l *ledger) begin(first, n int) *phase {
	p := &phase{first: first, last: first + n, done: make(chan struct{})}
	p.left.Store(int64(n))
	l.phase.Store(p)
	return p
}

// submitting and acked record the times of a call with these jobs and of its return.
func (l *ledger) submitting(jobs []int) {
	now := l.now()
	for _, n := range jobs {
		l.jobs[n].began.Store(now)
	}
}

func (l *ledger) acked(jobs []int) {
	now := l.now()
	for _, n := range jobs {
		l.jobs[n].acked.Store(now)
	}
}

// ran records a run of a job.
func (l *ledger) ran(n int) {
	if n < 0 || n >= len(l.jobs) {
		l.alien.Add(1)
		return
	}
	l.jobs[n].runs.Add(1)
	l.jobs[n].ran.CompareAndSwap(0, l.now())
}

// ended records that a job's success is durable.
func (l *ledger) ended(n int) {
	if n < 0 || n >= len(l.jobs) {
		l.alien.Add(1)
		return
	}
	l.jobs[n].ends.Add(1)
	if !l.jobs[n].ended.CompareAndSwap(0, l.now()) {
		return
	}
	if p := l.phase.Load(); n >= p.first && n < p.last && p.left.Add(-1) == 0 {
		close(p.done)
	}
}

// delivery is the outcome of the acknowledged jobs.
type delivery struct {
	Acknowledged int
	Lost         int // acknowledged, but did not run or did not end
	RunTwice     int // ran more than once, which at-least-once allows
	EndedTwice   int // ended more than once, which nothing allows
	Alien        int64
}

// audit checks the first n jobs, and compares them with the system's own counts.
func (l *ledger) audit(n int, c counts) (delivery, error) {
	var d delivery
	for i := range l.jobs[:n] {
		e := &l.jobs[i]
		if e.acked.Load() == 0 {
			continue
		}
		d.Acknowledged++
		if e.runs.Load() == 0 || e.ends.Load() == 0 {
			d.Lost++
		}
		if e.runs.Load() > 1 {
			d.RunTwice++
		}
		if e.ends.Load() > 1 {
			d.EndedTwice++
		}
	}
	d.Alien = l.alien.Load()
	var errs []error
	if d.Acknowledged != n || d.Lost > 0 || d.EndedTwice > 0 || d.Alien > 0 {
		errs = append(errs, fmt.Errorf("of %d jobs %d were acknowledged, of which %d are lost and %d ended twice; %d runs or ends are of unknown jobs",
			n, d.Acknowledged, d.Lost, d.EndedTwice, d.Alien))
	}
	if c != (counts{Succeeded: int64(n)}) {
		errs = append(errs, fmt.Errorf("of %d jobs the system says that %d have succeeded, %d are open and %d have failed", n, c.Succeeded, c.Open, c.Failed))
	}
	return d, errors.Join(errs...)
}

// rates are jobs per second from the first call to the last acknowledgement and
// to the last end.
func (l *ledger) rates(p *phase) (enqueued, done float64) {
	began, acked, ended := int64(1)<<62, int64(0), int64(0)
	for i := p.first; i < p.last; i++ {
		e := &l.jobs[i]
		began, acked, ended = min(began, e.began.Load()), max(acked, e.acked.Load()), max(ended, e.ended.Load())
	}
	n := float64(p.last-p.first) * float64(time.Second)
	return n / float64(acked-began), n / float64(ended-began)
}

// latencies are times since the submit: of half and of 99 % of the jobs.
type latencies struct {
	Run50          time.Duration // until the worker began to run
	Done50, Done99 time.Duration // until the end was durable
}

func (l *ledger) latencies(p *phase) latencies {
	var run, done []time.Duration
	for i := p.first; i < p.last; i++ {
		e := &l.jobs[i]
		run = append(run, time.Duration(e.ran.Load()-e.began.Load()))
		done = append(done, time.Duration(e.ended.Load()-e.began.Load()))
	}
	slices.Sort(run)
	slices.Sort(done)
	return latencies{Run50: run[len(run)/2], Done50: done[len(done)/2], Done99: done[len(done)*99/100]}
}
