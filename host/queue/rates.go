package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// noteRate is the prefix of the notes that keep, for each worker with a rate, when its next task would begin if
// all came evenly: a number of milliseconds. The worker's name follows. They are written when a queue closes, and
// removed when the next one opens, so that after a crash there are none.
const noteRate = "rate/"

// past is what a queue knows of the life before it, as far as rates are concerned.
type past struct {
	opened time.Time            // when this life began
	even   map[string]time.Time // by worker, as it was noted
	used   map[string]bool      // the workers that have tasks in the store
}

// recall reads what rates must know of the life before, and removes the notes.
func (q *Queue) recall(ctx context.Context) error {
	notes, err := q.store.Notes(ctx)
	if err != nil {
		return err
	}
	counts, err := q.store.Counts(ctx)
	if err != nil {
		return err
	}
	q.past = past{opened: q.clock.now(), even: map[string]time.Time{}, used: map[string]bool{}}
	for worker := range counts {
		q.past.used[worker] = true
	}
	var ops []record.Op
	for name, text := range notes {
		if worker, ok := strings.CutPrefix(name, noteRate); ok {
			q.past.even[worker] = numberIn(text).Time()
			ops = append(ops, &record.Note{Name: name})
		}
	}
	if len(ops) == 0 {
		return nil
	}
	refused := q.commit(ctx, ops, func(results []record.OpResult) { err = results[0].Err })
	if refused != nil {
		return refused
	}
	if err != nil && q.full() != nil { // what can't be removed may be read again after a crash
		clear(q.past.even)
		return nil
	}
	return err
}

// resumeRateLocked lets a lane keep to its rate over the change from one life to the next: when it isn't known what
// began before, as much has as could.
func (l *lane) resumeRateLocked() {
	if l.resumed || !l.rate.Bounded() {
		return
	}
	l.resumed = true
	p := &l.q.past
	if even, noted := p.even[l.name]; noted {
		l.rate.Resume(even, p.opened)
	} else if p.used[l.name] {
		l.rate.Exhaust(p.opened)
	}
}

// noteRates notes where the rates stand, for the next life.
func (q *Queue) noteRates(ctx context.Context) {
	if q.noted.Swap(true) {
		return
	}
	var ops []record.Op
	for name, l := range q.lanes.all() {
		l.mu.Lock()
		if l.resumed && l.rate.Bounded() {
			even := record.MillisOf(l.rate.Even().Add(time.Millisecond - 1))
			ops = append(ops, &record.Note{Name: noteRate + name, Text: strconv.FormatInt(int64(max(even, 1)), 10)})
		}
		l.mu.Unlock()
	}
	if len(ops) == 0 || q.store.Err() != nil || q.full() != nil {
		return
	}
	var err error
	if ended := q.commit(ctx, ops, func(results []record.OpResult) { err = results[0].Err }); ended != nil {
		err = ended
	}
	if err != nil {
		q.cfg.Logger.Warn("where the rates stand is not noted; the next start begins slowly", logkey.Error, err)
	}
}
