package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
)

// maxStrikes is how often a worker may end the host, or a process apart with a task that
// had ended the host, before it is held.
const maxStrikes = 2

// strikes are those of the workers, and what else is held against them. They are durable
// as notes of the store.
type strikes struct {
	mu       sync.Mutex // protects the rest
	byWorker map[string]strike
	lacking  map[string]string           // workers that need a process apart and have none, with the reason
	aparts   map[string]runtime.Fallible // plugins in such processes, the last one of each worker

	quarantines map[string]quarantine
}

// strike counts the strikes of a worker.
type strike struct {
	N      int    `json:"n"`
	SHA256 string `json:"sha256"` // of the plugin; another one begins anew
	// Last is when the last one was, which tells two of them apart.
	Last time.Time `json:"last"`
	File string    `json:"file,omitempty"` // of the evidence
}

// noteStrikes is the prefix of their notes; the worker's name follows.
const noteStrikes = "strikes/"

// load reads what the store keeps.
func (s *strikes) load(ctx context.Context, store record.Reader) error {
	notes, err := store.Notes(ctx)
	if err != nil {
		return fmt.Errorf("read which workers have ended the host: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byWorker, s.lacking, s.aparts = map[string]strike{}, map[string]string{}, map[string]runtime.Fallible{}
	s.quarantines = map[string]quarantine{}
	var errs []error
	for name, text := range notes {
		if err := s.readLocked(name, text); err != nil {
			errs = append(errs, fmt.Errorf("note %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// readLocked reads a note, if it is one of these.
func (s *strikes) readLocked(name, text string) error {
	if worker, ok := strings.CutPrefix(name, noteStrikes); ok {
		var of strike
		if err := json.Unmarshal([]byte(text), &of); err != nil {
			return err
		}
		s.byWorker[worker] = of
	}
	if worker, ok := strings.CutPrefix(name, noteQuarantine); ok {
		of := quarantine{lasts: true}
		if err := json.Unmarshal([]byte(text), &of); err != nil {
			return err
		}
		s.quarantines[worker] = of
	}
	return nil
}

// of returns the strikes of a plugin.
func (s *strikes) of(worker, digest string) strike {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.byWorker[worker]; of.SHA256 == digest {
		return of
	}
	return strike{SHA256: digest}
}

func (s *strikes) set(worker string, of strike) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byWorker[worker] = of
}

// setLacking says why a worker has no process apart; empty = that is over, or not known.
func (s *strikes) setLacking(worker, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lacking[worker] = reason
}

func (s *strikes) setApart(worker string, plugin runtime.Fallible) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aparts[worker] = plugin
}

// forget forgets what is held against a worker, and reports whether that was anything.
func (s *strikes) forget(worker string) (apart runtime.Fallible, was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was = s.byWorker[worker]
	_, quarantined := s.quarantines[worker]
	was = was || quarantined || s.lacking[worker] != ""
	delete(s.byWorker, worker)
	delete(s.lacking, worker)
	delete(s.quarantines, worker)
	return s.aparts[worker], was
}

// reason says why a worker is held; empty = it is not.
func (s *strikes) reason(w *settings) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.byWorker[w.Name]
	if of.N < maxStrikes || of.SHA256 != digestOf(w) {
		if q := s.quarantineOfLocked(w); q != nil && q.Failed != "" {
			return q.reason()
		}
		return s.lacking[w.Name]
	}
	evidence := ""
	if of.File != "" {
		evidence = " (" + of.File + " in the data folder tells more)"
	}
	return fmt.Sprintf("it has ended the host, or a process of its own in its place, %d times, the last time at %s%s; mend the plugin",
		of.N, of.Last.UTC().Format(time.RFC3339), evidence)
}

// digestOf is the digest of a worker's plugin, linked modules included.
func digestOf(w *settings) string {
	sum := sha256.New()
	_, _ = sum.Write(w.Plugin)
	for _, linked := range w.Linked {
		_, _ = sum.Write(linked.Bytes)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// strike counts one for a worker, durably. The one of a time counts once.
func (h *Host) strike(ctx context.Context, q *queue.Queue, name string, at time.Time, file string) error {
	w := h.workerOf(name)
	if w == nil {
		return nil // it is not in the manifest any more
	}
	of := h.held.of(name, digestOf(w))
	if of.N > 0 && of.Last.Equal(at) {
		return nil
	}
	of.N, of.Last, of.File = of.N+1, at, cmp.Or(file, of.File)
	text, err := json.Marshal(of)
	if err == nil {
		err = q.Remember(ctx, noteStrikes+name, string(text))
	}
	if err != nil {
		return err
	}
	h.held.set(name, of)
	h.cfg.Logger.Error("worker has ended the host, or a process in its place", logkey.Worker, name, logkey.Count, of.N, logkey.Limit, maxStrikes, logkey.Path, of.File)
	h.holdStruck(w, q)
	return nil
}

// workerOf returns a worker's settings, before the host runs and while it does.
func (h *Host) workerOf(name string) *settings {
	if r := h.running.Load(); r != nil {
		if w := r.workers()[name]; w != nil {
			return w.cfg
		}
		return nil
	}
	for i := range h.workers {
		if h.workers[i].Name == name {
			return &h.workers[i]
		}
	}
	return nil
}

// holdStruck holds a worker that has too many strikes, and no other. What else may hold
// it, which is its plugin, comes after this.
func (h *Host) holdStruck(w *settings, q *queue.Queue) {
	if w.own() {
		return
	}
	h.cfg.Metrics.SetStrikes(w.Name, h.held.of(w.Name, digestOf(w)).N)
	reason := h.held.reason(w)
	if reason != "" {
		h.cfg.Logger.Error("worker is held", logkey.Worker, w.Name, logkey.Reason, reason, logkey.Hint, "jobhost worker resume "+w.Name+", or another version of it")
	}
	q.Disable(w.Name, reason)
}

// endedProcess counts a strike for a task that has ended the process apart.
func (h *Host) endedProcess(ctx context.Context, q *queue.Queue, worker string, f *jobhost.Failure) {
	if err := h.strike(context.WithoutCancel(ctx), q, worker, time.Now().UTC().Truncate(time.Millisecond), ""); err != nil {
		h.cfg.Logger.Error("what ended a process apart can't be remembered", logkey.Worker, worker, logkey.Error, err, logkey.Reason, f.Message)
	}
}

// forgive forgets the strikes of a worker, and lets it run again.
func (h *Host) forgive(ctx context.Context, q *queue.Queue, worker string) error {
	for _, prefix := range []string{noteStrikes, noteQuarantine} {
		if err := q.Remember(ctx, prefix+worker, ""); err != nil {
			return err
		}
	}
	apart, was := h.held.forget(worker)
	if apart != nil {
		apart.Enable()
	}
	if was {
		h.cfg.Metrics.SetStrikes(worker, 0)
		q.Disable(worker, "")
	}
	return nil
}
