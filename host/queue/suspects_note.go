package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost/host/queue/record"
)

// noteRunning is the name of the note of what runs: see [runningNote].
const noteRunning = "running"

// runningNote is the note of what runs. It is in the store from the beginning of a term until it ends in good order.
type runningNote struct {
	// Deaths is how many leaders in a row have died before this one.
	Deaths int `json:"deaths,omitempty"`
	// Most is how many suspects of several deaths may run at a time.
	Most int `json:"most,omitempty"`
	// Running are the tasks with an attempt under way.
	Running []suspect `json:"running,omitempty"`
	// Waiting are the suspects that wait.
	Waiting []suspect `json:"waiting,omitempty"`
}

// readNote reads a note. If it can't be read it is empty, and still means that its host has died.
func readNote(text string) (n runningNote) {
	if json.Unmarshal([]byte(text), &n) != nil {
		return runningNote{}
	}
	return n
}

// noteInterval is the pause between two notes.
const noteInterval = time.Second

// noteWriter writes the note of what runs. That costs a commit in each second in which it has changed, rather than one for each
// attempt.
type noteWriter struct {
	suspects *suspects

	turn    sync.Mutex // held from making a note to handing it over, so that the last one is the newest; protects written and closed
	written string
	closed  bool
	failed  atomic.Bool // the last note was not written

	mu      sync.Mutex // protects the rest
	timer   *time.Timer
	waiting []chan bool // attempts that begin when they are noted
	writing bool        // a note for them is under way
}

func (w *noteWriter) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(noteInterval, w.tick)
}

func (w *noteWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *noteWriter) tick() {
	if w.suspects.q.closed.Load() {
		return
	}
	w.write()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.suspects.q.closed.Load() { // otherwise the timer must stay stopped
		w.timer.Reset(noteInterval)
	}
}

// awaitNoted waits until the attempts that are under way now are noted, the caller's included; false = they are not.
func (w *noteWriter) awaitNoted(ctx context.Context) bool {
	done := make(chan bool, 1)
	w.mu.Lock()
	w.waiting = append(w.waiting, done)
	begin := !w.writing
	w.writing = true
	w.mu.Unlock()
	if begin {
		w.write()
	}
	select {
	case ok := <-done:
		return ok
	case <-ctx.Done():
	case <-w.suspects.q.closing:
	case <-w.suspects.q.failed:
	}
	return false
}

// write writes a note if what runs has changed, and lets the attempts begin that wait for it.
func (w *noteWriter) write() {
	w.mu.Lock()
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	w.turn.Lock()
	defer w.turn.Unlock()
	text := w.text()
	again := w.failed.Swap(false)
	if w.closed || text == w.written && len(waiting) == 0 && !again {
		w.finishWrite(waiting, false)
		return
	}
	w.written = text
	w.suspects.q.inflight.Add(1)
	w.suspects.q.store.Commit([]record.Op{&record.Note{Name: noteRunning, Text: text}}, func(results []record.OpResult, err error) {
		defer w.suspects.q.inflight.Done()
		ok := err == nil && results[0].Err == nil
		w.failed.CompareAndSwap(false, !ok)
		w.finishWrite(waiting, ok)
	})
}

// finishWrite releases the attempts that waited for a note, and starts the next write if others have come meanwhile. That runs
// on a goroutine of its own, since the store's must not block.
func (w *noteWriter) finishWrite(waiting []chan bool, ok bool) {
	for _, done := range waiting {
		done <- ok // has room
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing = len(w.waiting) > 0; w.writing {
		w.suspects.q.inflight.Add(1)
		time.AfterFunc(0, func() {
			defer w.suspects.q.inflight.Done()
			w.write()
		})
	}
}

// text returns the current note.
func (w *noteWriter) text() string {
	s := w.suspects
	running := map[record.Key]int64{}
	for _, l := range s.q.lanes.all() {
		l.mu.Lock()
		for key, lease := range l.running {
			if !lease.kept {
				running[key] = int64(lease.entry.Token)
			}
		}
		l.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := runningNote{Most: s.maxRunning}
	if s.q.clock.now().Sub(s.opened) < aliveFor {
		n.Deaths = s.deaths
	}
	for key, token := range running {
		t := suspect{Key: key, Token: token}
		if d := s.tasks[key]; d.Token == token {
			t.Deaths = d.Deaths
		}
		if t.Deaths > 1 && !s.running[key] { // it was not admitted, and is about to wait again
			delete(running, key)
			continue
		}
		n.Running = append(n.Running, t)
	}
	for key, t := range s.tasks {
		if _, runs := running[key]; !runs {
			n.Waiting = append(n.Waiting, t)
		}
	}
	byKey := func(a, b suspect) int { return cmp.Compare(a.Key, b.Key) }
	slices.SortFunc(n.Running, byKey)
	slices.SortFunc(n.Waiting, byKey)
	text, _ := json.Marshal(n) //nolint:errchkjson // numbers can be written
	return string(text)
}

// close removes the note, after the last write.
func (w *noteWriter) close(ctx context.Context) error {
	w.turn.Lock()
	if w.closed {
		w.turn.Unlock()
		return nil
	}
	w.closed = true
	done := make(chan error, 1)
	w.suspects.q.store.Commit([]record.Op{&record.Note{Name: noteRunning}}, func(results []record.OpResult, err error) {
		if err == nil {
			err = results[0].Err
		}
		done <- err
	})
	w.turn.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
