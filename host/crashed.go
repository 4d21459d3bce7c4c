package host

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/crash"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
)

// crashed returns the attempts that were under way when the last host died and that
// count. One that waited for its process had not begun. One that had ended, and of which
// that was not durable, counts only when the host is known to have been ended by what it
// did: settling may be what ended it, but an operator who kills a host must not cost the jobs
// that were done.
func (h *Host) crashed() []queue.Crashed {
	ended := h.cfg.Crash.Ended()
	failure := failureOf(ended)
	var list []queue.Crashed
	for _, left := range h.cfg.Journal.Previous().Left {
		counts := left.Phase == journal.Running || left.Phase == journal.Settling && ended.ByItself()
		if counts && !left.Fiber && !left.Load {
			list = append(list, queue.Crashed{
				Key: record.Key(left.Key), Token: left.Token, Job: left.Job, Began: left.Began, Failure: failure,
			})
		}
	}
	return list
}

// failureOf is the record of an attempt that was under way. What the process wrote as it
// died is for operators, and no part of the message.
func failureOf(ended *crash.Ended) jobhost.Failure {
	f := jobhost.Failure{
		Code: jobhost.FailHostCrash, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical,
		Message: "the host died while the attempt was under way", Retryable: true,
	}
	if ended == nil {
		return f
	}
	if ended.How == crash.Killed {
		f.Message = "the host was killed while the attempt was under way"
	}
	evidence := struct {
		Ended crash.How `json:"ended"`
		Cause string    `json:"cause"`
		File  string    `json:"file,omitempty"`
	}{ended.How, ended.Cause, ended.File}
	if text, err := json.Marshal(evidence); err == nil { // its types can't fail
		f.Context = string(text)
	}
	return f
}

// recover deals with what the last host has left, if it died: attempts that were under
// way fail, a worker that is known to have ended the host has a strike, and plugins that
// were being loaded stay in quarantine. It comes before anything runs. If this host dies
// before it is done, the next one does it again, and what is durable doesn't count twice.
func (h *Host) recover(ctx context.Context, q *queue.Queue) error {
	ended, lefts := h.cfg.Crash.Ended(), h.cfg.Journal.Previous().Left
	if ended != nil {
		h.cfg.Metrics.HostCrashed(string(ended.How))
	}
	var short error // there is no room to note something
	if culprit, ok := culpritOf(lefts); ok && ended.ByItself() {
		if short = h.strike(ctx, q, culprit, ended.At, ended.File); short != nil && !lacksRoom(short) {
			return short
		}
	}
	if err := h.noteQuarantines(ctx, q); err != nil && !lacksRoom(err) {
		return err
	} else if err != nil {
		short = err
	}
	died := time.Now()
	if ended != nil && !ended.At.IsZero() {
		died = ended.At
	}
	settled, err := q.SettleCrashed(ctx, died)
	if err != nil && !lacksRoom(err) {
		return err
	}
	if short = cmp.Or(err, short); short != nil {
		h.cfg.Logger.Warn("what was under way when the last host died can't be noted; the next start does it", logkey.Error, short)
		return nil
	}
	if len(lefts) > 0 {
		h.cfg.Logger.Warn("attempts or loads were under way when the last host died", logkey.Count, len(lefts), "failed", len(settled))
	}
	for i := range lefts {
		lefts[i].End()
	}
	h.cfg.Crash.Done()
	return nil
}

// culpritOf returns the worker that alone had guests in the process of the host when it
// died. A plugin that was only being loaded is no culprit: it is in quarantine for that.
func culpritOf(lefts []journal.Left) (worker string, ok bool) {
	inline, ran := map[string]bool{}, false
	for i := range lefts {
		if lefts[i].Place == journal.Inline && lefts[i].Phase == journal.Running {
			inline[lefts[i].Worker] = true
			ran = ran || !lefts[i].Load
		}
	}
	if len(inline) != 1 || !ran {
		return "", false
	}
	return slices.Collect(maps.Keys(inline))[0], true
}

// isSuspectFiber reports whether a fiber was under way when the last host was ended by
// what it did. It then runs apart as long as this host does.
func (h *Host) isSuspectFiber(id string) bool {
	return h.cfg.Crash.Ended().ByItself() && slices.ContainsFunc(h.cfg.Journal.Previous().Left, func(l journal.Left) bool {
		return l.Fiber && l.Job == id
	})
}
