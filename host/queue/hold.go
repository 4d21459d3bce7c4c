package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// hold says why no ready task of a lane may run, however many slots are free.
type hold uint8

const (
	notHeld hold = iota
	holdParked
	holdPaused
	holdDraining
	holdDisabled
	holdFailed
	holdLease
	holdRate
	holdBreaker
)

// holdLocked returns what holds the lane's ready tasks.
func (l *lane) holdLocked() hold {
	held := l.q.storeHolds()
	switch {
	case l.parked.Load():
		return holdParked
	case l.mode == jobhost.WorkerPaused:
		return holdPaused
	case l.mode == jobhost.WorkerDraining:
		return holdDraining
	case l.disabled != "":
		return holdDisabled
	case held != notHeld:
		return held
	case l.rate.Bounded() && l.q.clock.now().Before(l.rate.Next()):
		return holdRate
	case l.breaker != nil && l.heldByBreaker(l.q.clock.now()):
		return holdBreaker
	}
	return notHeld
}

// untilLocked is when a hold ends by itself; the zero time = not by time.
func (l *lane) untilLocked(h hold) time.Time {
	switch h {
	case holdLease:
		return l.q.clock.now().Add(leasePoll)
	case holdRate:
		return l.rate.Next()
	case holdBreaker:
		_, until := l.breaker.Holds(l.q.clock.now())
		return until
	}
	return time.Time{}
}

// wakeLocked sets the alarm that lets the lane go on when what holds it, or a group of it,
// ends by itself.
func (l *lane) wakeLocked() {
	at := l.untilLocked(l.holdLocked())
	if until := l.jobBreakers.until(); at.IsZero() || !until.IsZero() && until.Before(at) {
		at = until
	}
	if at.IsZero() || at.Equal(l.wake.at) || l.q.closed.Load() {
		return
	}
	l.wake.set(at, at.Sub(l.q.clock.now()), l.awake)
}

// awake runs when what holds the lane has ended.
func (l *lane) awake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake.at = time.Time{}
	l.lookAgainLocked()
	l.pumpLocked()
	l.wakeLocked() // for what is held still
}

// noteMode is the prefix of the notes that keep modes; the worker's name follows.
const noteMode = "mode/"

// modeEvents are the events of the modes.
var modeEvents = map[jobhost.WorkerMode]jobhost.EventKind{
	jobhost.WorkerRunning:  jobhost.EventResumed,
	jobhost.WorkerPaused:   jobhost.EventPaused,
	jobhost.WorkerDraining: jobhost.EventDraining,
}

// SetMode pauses, drains or resumes a worker that is loaded, durably: the mode
// holds until it is changed, also for another queue over the same store.
// When it returns, no task is handed out that must not be.
func (q *Queue) SetMode(ctx context.Context, worker string, mode jobhost.WorkerMode) error {
	l, err := q.loaded(worker)
	if err != nil {
		return err
	}
	op := &record.Note{Name: noteMode + worker, Text: string(mode)}
	if mode == jobhost.WorkerRunning {
		op.Text = "" // the default is not stored
	}
	err = q.commitOne(ctx, op, func(result record.OpResult) {
		if result.Err == nil && l.setMode(mode) {
			q.cfg.Publish(jobhost.Event{Kind: modeEvents[mode], Time: q.clock.now(), Worker: worker})
		}
	})
	if err != nil {
		return fmt.Errorf("worker %s: %w", worker, err)
	}
	return nil
}

// loaded returns the lane of a worker that is loaded.
func (q *Queue) loaded(worker string) (*lane, error) {
	if q.closed.Load() {
		return nil, errClosed
	}
	if l := q.lanes.of(worker); l != nil && !l.parked.Load() {
		return l, nil
	}
	return nil, q.noWorker(worker)
}

// setMode changes the mode and reports whether it was another.
func (l *lane) setMode(mode jobhost.WorkerMode) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode == mode {
		return false
	}
	l.mode = mode
	l.pumpLocked()
	return true
}

// Disable holds the tasks of a worker that can't run anything, for a reason, until that is
// empty. Jobs are taken. Nothing of it is kept: another queue over the same store finds out by itself.
func (q *Queue) Disable(worker, reason string) {
	l := q.lanes.of(worker)
	if l == nil {
		return
	}
	l.mu.Lock()
	kind := jobhost.EventDisabled
	if reason == "" {
		kind = jobhost.EventEnabled
	}
	changed := (l.disabled == "") != (reason == "")
	l.disabled = reason
	l.pumpLocked()
	l.mu.Unlock()
	if changed {
		q.cfg.Publish(jobhost.Event{Kind: kind, Time: q.clock.now(), Worker: worker})
	}
}

// Disabled returns why a worker, which must be one of the queue's, can't run anything; empty = it can.
func (q *Queue) Disabled(worker string) string {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.disabled
}

// remember reads what was noted of the lane's worker.
func (l *lane) remember(ctx context.Context) error {
	notes, err := l.q.store.Notes(ctx)
	if err != nil {
		return err
	}
	l.q.breakers.remember(notes)
	text := notes[noteMode+l.name]
	if text == "" {
		return nil
	}
	mode, err := jobhost.ParseWorkerMode(text)
	if err != nil {
		return fmt.Errorf("note %s%s: %w", noteMode, l.name, err)
	}
	l.mode = mode
	return nil
}

// Mode returns the mode of a worker, which must be one of the queue's.
func (q *Queue) Mode(worker string) jobhost.WorkerMode {
	l := q.lanes.of(worker)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode
}

// leasePoll is how often a queue that is held looks whether the lease of its store was renewed.
const leasePoll = 100 * time.Millisecond

// storeHolds returns why no task of any worker may begin: the store has failed, or its lease is overdue and another host may
// lead soon.
func (q *Queue) storeHolds() hold {
	select {
	case <-q.failed:
		return holdFailed
	default:
	}
	if q.leased != nil && q.leased.Holding() {
		return holdLease
	}
	return notHeld
}
