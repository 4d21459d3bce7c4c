package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/logkey"
)

// quarantine is for a plugin that a host was loading when it died: it is loaded in a
// process of its own only, and if that fails its worker is held. It ends when the worker
// is resumed, and doesn't hold for another version of the plugin. One of a host that was
// killed from outside, for which the plugin may be innocent, ends with this host too.
type quarantine struct {
	SHA256 string `json:"sha256"` // of the plugin
	// At is when the load began, and File the evidence.
	At   time.Time `json:"at"`
	File string    `json:"file,omitempty"`
	// Failed is why it can't be loaded in a process either; empty = it can, or that was
	// not tried yet.
	Failed string `json:"failed,omitempty"`

	lasts   bool // is durable, or will be as soon as the queue is open
	passing bool // Failed is no fault of the plugin; the next load tries it again
}

// noteQuarantine is the prefix of their notes; the worker's name follows.
const noteQuarantine = "quarantine/"

// reason says why the plugin doesn't run in the process of the host.
func (q *quarantine) reason() string {
	text := "the host died while it loaded this plugin, at " + q.At.UTC().Format(time.RFC3339)
	if q.File != "" {
		text += " (" + q.File + " in the data folder tells more)"
	}
	if q.Failed != "" {
		text += ", and a process of its own can't load it: " + q.Failed + "; mend the plugin"
	}
	return text
}

// quarantineOf returns the quarantine of a worker's plugin; nil = it is in none.
func (s *strikes) quarantineOf(w *settings) *quarantine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quarantineOfLocked(w)
}

func (s *strikes) quarantineOfLocked(w *settings) *quarantine {
	q, ok := s.quarantines[w.Name]
	if !ok || w.own() || w.InProcesses() || q.SHA256 != digestOf(w) {
		return nil
	}
	return &q
}

func (s *strikes) setQuarantine(worker string, q *quarantine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quarantines[worker] = *q
}

// lasting returns the quarantines that must be durable.
func (s *strikes) lasting() map[string]quarantine {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[string]quarantine{}
	for worker, q := range s.quarantines {
		if q.lasts {
			list[worker] = q
		}
	}
	return list
}

// suspectLoads puts the plugins in quarantine that the last host was loading when it
// died. What the store knows of one stays: it has failed in a process already, or it was
// let out by a resume, which ended as the load before it.
func (h *Host) suspectLoads() {
	ended := h.cfg.Crash.Ended()
	for _, left := range h.cfg.Journal.Previous().Left {
		if !left.Load {
			continue
		}
		w := h.workerOf(left.Worker)
		if w == nil || h.held.quarantineOf(w) != nil {
			continue
		}
		q := quarantine{SHA256: left.Job, At: left.Began}
		if ended != nil {
			q.File, q.lasts = ended.File, ended.ByItself()
		}
		h.held.setQuarantine(w.Name, &q)
	}
}

// loadApart loads a plugin that is in quarantine. An error is that of ctx: a worker whose
// plugin can't be loaded is held rather than keep the others from running.
func (h *Host) loadApart(ctx context.Context, w *settings, q *quarantine) (loaded, error) {
	if q.Failed == "" || q.passing {
		q.Failed, q.passing = "", false
		plugin, err := h.loadProcess(ctx, w)
		if err == nil {
			h.held.setQuarantine(w.Name, q)
			h.cfg.Logger.Warn("worker runs in a process apart", logkey.Worker, w.Name, logkey.Reason, q.reason(), logkey.Hint, "jobhost worker resume "+w.Name+", or another version of it")
			return loaded{Plugin: plugin, quarantine: q}, nil
		}
		if ctx.Err() != nil {
			return loaded{}, errors.Join(context.Cause(ctx), err)
		}
		h.cfg.Logger.Error("plugin that the host was loading when it died can't be loaded in a process", logkey.Worker, w.Name, logkey.Error, err)
		q.fail(err)
		h.held.setQuarantine(w.Name, q)
	}
	return loaded{Plugin: absent{w}, quarantine: q}, nil
}

// fail notes why a process can't load the plugin. What ended the process is the plugin's
// doing, whatever ended the host; that there is no process is not, and may be over with
// the next start.
func (q *quarantine) fail(err error) {
	q.Failed = withoutCause(err)
	q.passing = jobhost.CodeOf(err) == jobhost.CodeUnavailable
	q.lasts = q.lasts || !q.passing
}

// withoutCause is the text of an error without its cause, which is for operators.
func withoutCause(err error) string {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// noteQuarantines makes the quarantines durable that must be.
func (h *Host) noteQuarantines(ctx context.Context, q *queue.Queue) error {
	for worker, of := range h.held.lasting() {
		if of.passing {
			of.Failed = ""
		}
		text, err := json.Marshal(of)
		if err == nil {
			err = q.Remember(ctx, noteQuarantine+worker, string(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteLoad notes that a plugin is being loaded into the process of the host, until the
// entry is ended.
func (h *Host) noteLoad(worker, digest string) *journal.Entry {
	return h.cfg.Journal.Begin(&journal.Task{Worker: worker, Job: digest, Load: true, Place: journal.Inline, Began: time.Now()}, journal.Running)
}

// readmit loads the plugin of a worker that is in quarantine into the process of the
// host, and swaps it in. With an error all is as before. If it ends the host again, the
// next one has it in quarantine again.
func (h *Host) readmit(ctx context.Context, name string) error {
	if w := h.running.Load().workers()[name]; w == nil || w.quarantine == nil {
		return nil
	}
	if err := h.beginReload(ctx); err != nil {
		return err
	}
	defer h.reloading.Release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.leaving, func() { cancel(context.Cause(h.leaving)) })()
	w := h.running.Load().workers()[name]
	if w == nil || w.quarantine == nil {
		return nil // a reload came first
	}
	changes := []change{{kind: jobhost.WorkerChanged, name: name, cfg: w.cfg, old: w, readmits: true}}
	err := h.prepare(ctx, changes)
	if err == nil {
		err = h.commit(changes)
	}
	if err != nil {
		return fmt.Errorf("resume worker %s: %w", name, err)
	}
	h.tellReload(&changes[0])
	// Before another reload has its turn, which would find it in quarantine.
	return h.forgive(context.WithoutCancel(ctx), h.running.Load().Queue, name)
}
