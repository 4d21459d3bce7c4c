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

// noteRunning is the note of what runs: see [note].
const noteRunning = "running"

// note is what a host notes while it leads. It stands from the beginning of its term to its end in good order.
type note struct {
	// Deaths is how many leaders in a row had died before.
	Deaths int `json:"deaths,omitempty"`
	// Most is how many suspects of several deaths may run at one time.
	Most int `json:"most,omitempty"`
	// Running are the tasks with an attempt under way.
	Running []suspect `json:"running,omitempty"`
	// Waiting are those that wait, and had one under way when a leader died.
	Waiting []suspect `json:"waiting,omitempty"`
}

// readNote reads a note. Of one that can't be read it is known that its host has died.
func readNote(text string) (n note) {
	if json.Unmarshal([]byte(text), &n) != nil {
		return note{}
	}
	return n
}

// watchTime is how often what runs is noted.
const watchTime = time.Second

// watch notes what runs. The note costs a commit each second in which something else runs than before, and none for an
// attempt.
type watch struct {
	suspects *suspects

	turn    sync.Mutex // held while the note is made and handed over, so that the last one is the newest; protects written and over
	written string
	over    bool
	failed  atomic.Bool // the last note was not made

	mu      sync.Mutex // protects the rest
	timer   *time.Timer
	waiting []chan bool // attempts that begin when they are noted
	writing bool        // a note for such is under way
}

func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(watchTime, w.tick)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) tick() {
	if w.suspects.q.closed.Load() {
		return
	}
	w.write()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.suspects.q.closed.Load() { // else stop has come or will, and must find nothing to stop
		w.timer.Reset(watchTime)
	}
}

// noted waits until the attempts that are under way now are noted, which is that of the caller too. It reports whether
// they are.
func (w *watch) noted(ctx context.Context) bool {
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

// write notes what runs, if that is another than before, and lets those begin that wait for it.
func (w *watch) write() {
	w.mu.Lock()
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	w.turn.Lock()
	defer w.turn.Unlock()
	text := w.text()
	again := w.failed.Swap(false)
	if w.over || text == w.written && len(waiting) == 0 && !again {
		w.wrote(waiting, false)
		return
	}
	w.written = text
	w.suspects.q.inflight.Add(1)
	w.suspects.q.store.Commit([]record.Op{&record.Note{Name: noteRunning, Text: text}}, func(results []record.OpResult, err error) {
		defer w.suspects.q.inflight.Done()
		ok := err == nil && results[0].Err == nil
		w.failed.CompareAndSwap(false, !ok)
		w.wrote(waiting, ok)
	})
}

// wrote goes on with those that have come meanwhile, on another goroutine: the store's must not wait.
func (w *watch) wrote(waiting []chan bool, ok bool) {
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

// text is the note as it is to be now.
func (w *watch) text() string {
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
	n := note{Most: s.most}
	if s.q.clock.now().Sub(s.opened) < aliveFor {
		n.Deaths = s.deaths
	}
	for key, token := range running {
		t := suspect{Key: key, Token: token}
		if d := s.doubts[key]; d.Token == token {
			t.Deaths = d.Deaths
		}
		if t.Deaths > 1 && !s.crowd[key] { // it is about to wait again
			delete(running, key)
			continue
		}
		n.Running = append(n.Running, t)
	}
	for key, t := range s.doubts {
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

// close removes the note, after the last one that is under way.
func (w *watch) close(ctx context.Context) error {
	w.turn.Lock()
	if w.over {
		w.turn.Unlock()
		return nil
	}
	w.over = true
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
