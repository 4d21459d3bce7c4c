// Package crash finds out how the previous host ended if it was not stopped, and keeps the
// evidence: the text that Go writes as a process dies goes to a file, and the number of kills by
// the kernel's OOM killer is recorded while the host runs.
package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/internal/logkey"
)

// How is the way in which a host ended.
type How string

// The ways a host can end.
const (
	Fatal  How = "fatal_error" // Go ended it: an unrecovered panic, a processor signal, out of memory
	OOM    How = "oom_killed"  // the kernel's OOM killer, as far as the evidence goes
	Killed How = "killed"      // from outside, without a chance to write anything
)

// Ended describes the end of a host that was not stopped.
type Ended struct {
	How How `json:"how"`
	// Cause is the first lines of Go's output, or a sentence. It is for operators.
	Cause string `json:"cause"`
	// File is the file with all of Go's output, relative to the folder of the store; empty =
	// nothing.
	File string `json:"file,omitempty"`
	// At is the approximate time of the end.
	At time.Time `json:"at"`
}

// ByItself reports whether the host is known to have been ended by its own doing, and not from
// outside.
func (e *Ended) ByItself() bool { return e != nil && e.How != Killed }

// Recorder collects evidence while a host runs.
type Recorder struct {
	dir     string
	journal *journal.Journal
	ended   *Ended
	system  system

	mu   sync.Mutex // protects memo
	memo memo
}

// memo is what the journal records for the next host.
type memo struct {
	Kills kills     `json:"kills"`
	At    time.Time `json:"at"`
	// Pending is the end of an earlier host whose attempts may not all have been dealt with yet.
	Pending *Ended `json:"pending,omitempty"`
}

// Folder is the folder of the evidence, within that of the store.
const Folder = "crashes"

// running is the file that Go writes to if the process crashes.
const running = "running.txt"

// Open finds out how the last host on the store in dir ended, and makes Go write to a file there
// if this one crashes. A process can have only one.
func Open(dir string, j *journal.Journal, logger *slog.Logger) (*Recorder, error) {
	r := &Recorder{dir: filepath.Join(dir, Folder), journal: j, system: linux{root: "/"}}
	if err := r.open(logger); err != nil {
		return nil, fmt.Errorf("keep evidence of crashes: %w", err)
	}
	return r, nil
}

func (r *Recorder) open(logger *slog.Logger) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	text, file, err := r.keep()
	if err != nil {
		return err
	}
	previous, last := r.journal.Previous(), memo{}
	if err := json.Unmarshal(previous.Memo, &last); err != nil {
		last = memo{} // written by another version, or missing
	}
	now := r.system.kills()
	if previous.Crashed {
		r.ended = endOf(text, file, last.Kills, now)
		r.ended.At = last.At
		logger.Error("the host was not stopped the last time, it ended", logkey.Reason, string(r.ended.How), "cause", r.ended.Cause, logkey.Path, r.ended.File)
	}
	if last.Pending != nil { // the start after that crash did not get far enough to deal with it
		r.ended = last.Pending
	}
	r.memo.Pending = r.ended
	r.remember(now)
	return errors.Join(r.discard(), r.begin())
}

// keep renames the output of the last process and returns it.
func (r *Recorder) keep() (text []byte, name string, err error) {
	from := filepath.Join(r.dir, running)
	text, err = readStart(from, keptBytes)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, "", err
	}
	name = info.ModTime().UTC().Format("20060102T150405.000Z") + ".txt"
	if err := errors.Join(os.Truncate(from, int64(len(text))), os.Rename(from, filepath.Join(r.dir, name))); err != nil {
		return nil, "", err
	}
	return text, filepath.Join(Folder, name), nil
}

// begin makes Go write its crash output to a new file.
func (r *Recorder) begin() error {
	f, err := os.OpenFile(filepath.Join(r.dir, running), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(debug.SetCrashOutput(f, debug.CrashOptions{}), f.Close()) // SetCrashOutput has duplicated the descriptor
}

// Ended returns how the last host ended; nil = it was stopped, the machine has been restarted
// since, or there was none.
func (r *Recorder) Ended() *Ended {
	if r == nil {
		return nil
	}
	return r.ended
}

// Done records that the attempts left by the last host have been dealt with.
func (r *Recorder) Done() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.memo.Pending = nil
	r.mu.Unlock()
	r.remember(r.system.kills())
}

// every is the interval at which the OOM kills are recorded, so that earlier kills of other
// processes aren't taken for the cause of the host's end.
const every = time.Second

// Watch keeps the record for the next host up to date until ctx ends.
func (r *Recorder) Watch(ctx context.Context) error {
	if r == nil {
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.remember(r.system.kills())
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *Recorder) remember(now kills) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memo.Kills, r.memo.At = now, time.Now().UTC()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)       // escaping would make it longer than there is room for
	if encoder.Encode(r.memo) == nil { // these types can't fail
		r.journal.Remember(text.Bytes())
	}
}

// Close is for a host that has stopped: Go writes only to standard error again.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), os.Remove(filepath.Join(r.dir, running)))
}
