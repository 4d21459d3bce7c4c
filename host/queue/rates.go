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
// all came evenly: a number of milliseconds. The worker's name follows. They are written when a queue closes; while one
// is open, and after a crash, they say rateUnknown.
const (
	noteRate    = "rate/"
	rateUnknown = "unknown"
)

// past is what a queue knows of the life before it, as far as rates are concerned.
type past struct {
	opened time.Time         // when this life began
	notes  map[string]string // by worker, as they were; none = it has had no rate
}

// recall reads where rates stood in the life before, and notes that it isn't known from now on.
func (q *Queue) recall(ctx context.Context) error {
	notes, err := q.store.Notes(ctx)
	if err != nil {
		return err
	}
	q.past = past{opened: q.clock.now(), notes: map[string]string{}}
	open := map[string]bool{}
	for name, text := range notes {
		if worker, ok := strings.CutPrefix(name, noteRate); ok {
			q.past.notes[worker] = text
			open[worker] = text != rateUnknown
		}
	}
	for _, w := range q.cfg.Workers {
		if _, noted := open[w.Name]; !noted && w.Rate.Every() > 0 {
			open[w.Name] = true
		}
	}
	var ops []record.Op
	for worker, write := range open {
		if write {
			ops = append(ops, &record.Note{Name: noteRate + worker, Text: rateUnknown})
		}
	}
	ops = append(ops, q.suspects.recall(notes[noteRunning])...)
	if len(ops) == 0 {
		return nil
	}
	var refused error
	if err := q.commit(ctx, ops, func(results []record.OpResult) { refused = results[0].Err }); err != nil {
		return err
	}
	if refused != nil { // a host starts on a full disk
		q.cfg.Logger.Warn("where the rates stood can't be changed, so it doesn't count", logkey.Error, refused)
		for worker := range open {
			q.past.notes[worker] = rateUnknown
		}
	}
	return nil
}

// resumeRateLocked lets a lane keep to its rate over the change from one life to the next: when it isn't known what
// began before, as much has as could. It reports whether that the lane has a rate is news, which is to be noted.
func (l *lane) resumeRateLocked() (news bool) {
	if l.resumed || !l.rate.Bounded() {
		return false
	}
	l.resumed = true
	p := &l.q.past
	switch note, noted := p.notes[l.name]; {
	case !noted:
		return !l.q.rated(l.name)
	case note == rateUnknown:
		l.rate.Exhaust(p.opened)
	default:
		l.rate.Resume(numberIn(note).Time(), p.opened)
	}
	return false
}

// rated reports whether a worker had a rate when the queue was opened.
func (q *Queue) rated(worker string) bool {
	for i := range q.cfg.Workers {
		if w := &q.cfg.Workers[i]; w.Name == worker {
			return w.Rate.Every() > 0
		}
	}
	return false
}

// noteRated notes that a worker has got a rate. It doesn't wait.
func (q *Queue) noteRated(worker string) {
	q.inflight.Add(1)
	q.store.Commit([]record.Op{&record.Note{Name: noteRate + worker, Text: rateUnknown}}, func([]record.OpResult, error) {
		q.inflight.Done()
	})
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
	var refused error
	err := q.commit(ctx, ops, func(results []record.OpResult) { refused = results[0].Err })
	if err == nil {
		err = refused
	}
	if err != nil {
		q.cfg.Logger.Warn("where the rates stand is not noted; the next start begins slowly", logkey.Error, err)
	}
}
