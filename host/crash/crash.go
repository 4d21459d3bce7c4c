// Package crash finds out how the host before this one has ended, when it was not
// stopped, and keeps the evidence: the text that Go writes as a process dies goes to
// a file, and how often the kernel's OOM killer was at work is remembered while the
// host runs.
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

// How says how a host has ended.
type How string

// The ways to end.
const (
	Fatal  How = "fatal_error" // Go ended it: an unrecovered panic, a signal of the processor, no memory
	OOM    How = "oom_killed"  // the kernel's OOM killer, by all evidence
	Killed How = "killed"      // from outside: it had no time to write anything
)

// Ended tells how a host has ended that was not stopped.
type Ended struct {
	How How `json:"how"`
	// Cause are the first lines of what Go wrote, or a sentence. It is for operators.
	Cause string `json:"cause"`
	// File is the file with all that Go wrote, below the folder of the store; empty = nothing.
	File string `json:"file,omitempty"`
	// At is about when that was.
	At time.Time `json:"at"`
}

// ByItself reports whether the host is known to have been ended by what it did, and
// not from outside.
func (e *Ended) ByItself() bool { return e != nil && e.How != Killed }

// Recorder watches over a host that runs.
type Recorder struct {
	dir     string
	journal *journal.Journal
	ended   *Ended
	system  system

	mu   sync.Mutex // protects memo
	memo memo
}

// memo is what the journal remembers for the next host.
type memo struct {
	Kills kills     `json:"kills"`
	At    time.Time `json:"at"`
	// Pending is how a host has ended of which attempts may be left that weren't dealt with yet.
	Pending *Ended `json:"pending,omitempty"`
}

// Folder is the folder of the evidence, below that of the store.
const Folder = "crashes"

// running is the file that Go writes to as the process ends.
const running = "running.txt"

// Open finds out how the last host has ended whose store is in a folder, and makes
// Go write to a file there if this one ends likewise. There is one for a process.
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
		last = memo{} // of another version, or none
	}
	now := r.system.kills()
	if previous.Crashed {
		r.ended = endOf(text, file, last.Kills, now)
		r.ended.At = last.At
		logger.Error("the host was not stopped the last time, it ended", logkey.Reason, string(r.ended.How), "cause", r.ended.Cause, logkey.Path, r.ended.File)
	}
	if last.Pending != nil { // the start after that crash did not come far enough to deal with it
		r.ended = last.Pending
	}
	r.memo.Pending = r.ended
	r.remember(now)
	return errors.Join(r.discard(), r.begin())
}

// keep gives what the last process wrote a name of its own, and returns it.
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

// begin makes Go write its last words to a new file.
func (r *Recorder) begin() error {
	f, err := os.OpenFile(filepath.Join(r.dir, running), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(debug.SetCrashOutput(f, debug.CrashOptions{}), f.Close()) // which has a descriptor of its own
}

// Ended tells how the last host has ended; nil = it was stopped, the machine was started
// since, or there was none.
func (r *Recorder) Ended() *Ended {
	if r == nil {
		return nil
	}
	return r.ended
}

// Done says that the attempts which the last host has left are dealt with.
func (r *Recorder) Done() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.memo.Pending = nil
	r.mu.Unlock()
	r.remember(r.system.kills())
}

// every is how often the OOM killer's work is looked at: what it did to other processes
// before the host ended is then not taken for what ended it.
const every = time.Second

// Watch remembers what the next host must know, until ctx ends.
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
	encoder.SetEscapeHTML(false)       // which would make it longer than there is room
	if encoder.Encode(r.memo) == nil { // its types can't fail
		r.journal.Remember(text.Bytes())
	}
}

// Close is for a host that has stopped: Go writes to the standard error alone again.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), os.Remove(filepath.Join(r.dir, running)))
}
