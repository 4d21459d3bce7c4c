// Package object keeps the payloads and results that are too large for the
// queue's store, as objects in payload stores, and removes them when nobody
// refers to them any more. It implements [queue.Objects].
//
//	Put, Create, Upload ─► object, durable ─► commit of the row that refers to it
//	row removed ─► reference gone, in the same commit ─► janitor: object deleted ─► reference forgotten
//	crash in between ─► sweep: objects that no row refers to, when they are old enough
//
// What is under way in this process is held, so that neither janitor nor sweep
// takes it for rubbish.
package object

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// Config says what a keeper keeps, and where. Zero values mean the defaults in brackets.
type Config struct {
	// Set are the stores of the objects.
	Set *payload.Set
	// Store knows which of them are referred to.
	Store record.Store
	// MaxUpload bounds an upload, in bytes [1 GiB].
	MaxUpload int64
	// OrphanAge is how old an object is that no row refers to, and that this
	// process doesn't hold, when the sweep removes it [2 d].
	OrphanAge time.Duration
	// UploadFor is how long an upload waits for its job [1 h], no longer than OrphanAge.
	UploadFor time.Duration
	// YoungFor is how old an object is at most that its store may only not show yet
	// when it says that there is none [5 min]; less than 0 = none is.
	YoungFor time.Duration
	// KeepBytes bounds the results in memory that wait for a store [64 MiB].
	KeepBytes int64
	// Away is called when a store can't be read or written to any more, and when it can
	// again. It must not block [none].
	Away func(store string, verb payload.Verb, away bool)
	// Kept is called with the number of results that wait for a store. It must not block [none].
	Kept func(results int)
	// Removed is told how many objects were removed, and whether they were
	// orphans, and must not block [nobody].
	Removed func(objects int, orphans bool)
	// Place is where the database of Store is, such that no two hosts that live
	// have the same; empty = it can't be copied.
	Place string
	// Contested is called with whether another living host has the same objects in a
	// store. It must not block [none].
	Contested func(store string, contested bool)
	Logger    *slog.Logger // [discard]
}

// Keeper keeps objects. All methods may be called from many goroutines.
type Keeper struct {
	cfg    Config
	secret []byte           // signs what uploaders get
	own    []payload.Origin // whose objects are removed
	wake   chan struct{}
	swept  map[string]string // by store, the key up to which objects were judged; only Run has it
	calm   time.Time         // no sweep before; set before Run
	owners *ownerships       // only Run has them

	sides   map[sideKey]*side
	target  *side                  // of the store that takes what is written
	changed chan struct{}          // wakes Watch
	notify  atomic.Pointer[func()] // is called when a store is back
	refusal atomic.Pointer[jobhost.Error]
	room    room
	removed removals

	mu       sync.Mutex          // protects the fields below
	kept     []*kept             // the oldest first
	ended    bool                // nothing is kept any more
	held     map[string]*holding // by name
	deleting map[string]bool     // names that are being deleted
	dropped  []payload.Ref       // that nobody refers to
	waiting  bool                // something is to be deleted that is held
}

// holding is an object that something under way may refer to soon.
type holding struct {
	n        int
	uploaded bool // it is not to be dropped: who uploaded it may submit it again
}

var _ queue.Objects = (*Keeper)(nil)

// maxDropped bounds what is dropped and not deleted yet; the rest is for the sweep.
const maxDropped = 4096

// New returns a keeper; Run does its housekeeping.
func New(ctx context.Context, cfg Config) (*Keeper, error) {
	setDefaults(&cfg)
	k := &Keeper{
		cfg: cfg, wake: make(chan struct{}, 1), swept: map[string]string{},
		held: map[string]*holding{}, deleting: map[string]bool{},
		sides: newSides(cfg.Set.Stores()), changed: make(chan struct{}, 1), room: room{most: cfg.KeepBytes},
	}
	k.target = k.sides[sideKey{cfg.Set.Target(), payload.Put}]
	o, err := openOrigins(ctx, cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("open payloads: %w", err)
	}
	k.secret, k.own = o.secret, o.removable()
	k.owners = newOwnerships(&k.cfg)
	cfg.Set.SetOrigin(o.own())
	if len(o.foreign) > 0 {
		cfg.Logger.Info("this store was restored: the payloads of before are read and never removed, since the original may need them",
			logkey.Hint, "if the original is gone: jobhost restore --take-over, while the host is stopped")
	}
	return k, nil
}

func setDefaults(cfg *Config) {
	if cfg.MaxUpload == 0 {
		cfg.MaxUpload = 1 << 30
	}
	if cfg.OrphanAge == 0 {
		cfg.OrphanAge = 48 * time.Hour
	}
	if cfg.UploadFor == 0 {
		cfg.UploadFor = time.Hour
	}
	cfg.UploadFor = min(cfg.UploadFor, cfg.OrphanAge)
	if cfg.YoungFor == 0 {
		cfg.YoungFor = 5 * time.Minute
	}
	if cfg.KeepBytes == 0 {
		cfg.KeepBytes = 64 << 20
	}
	if cfg.Away == nil {
		cfg.Away = func(string, payload.Verb, bool) {}
	}
	if cfg.Kept == nil {
		cfg.Kept = func(int) {}
	}
	if cfg.Removed == nil {
		cfg.Removed = func(int, bool) {}
	}
	if cfg.Contested == nil {
		cfg.Contested = func(string, bool) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

// Put implements [queue.Objects].
func (k *Keeper) Put(ctx context.Context, data []byte) (payload.Ref, error) {
	if refusal := k.refusal.Load(); refusal != nil {
		return payload.Ref{}, refusal
	}
	w, err := k.Create(ctx, int64(len(data)))
	if err != nil {
		return payload.Ref{}, err
	}
	defer w.Abort()
	if _, err := io.Copy(struct{ io.Writer }{w}, bytes.NewReader(data)); err != nil {
		return payload.Ref{}, err
	}
	return w.Commit()
}

// hold holds an object; false = it is being deleted.
func (k *Keeper) hold(name string, uploaded bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.deleting[name] {
		return false
	}
	h := k.held[name]
	if h == nil {
		h = &holding{}
		k.held[name] = h
	}
	h.n++
	h.uploaded = h.uploaded || uploaded
	return true
}

// letGo ends a holding and reports whether it was that of an upload.
func (k *Keeper) letGo(name string) (uploaded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.held[name]
	if h == nil {
		return true // it never was: then it is nobody's to drop
	}
	if h.n--; h.n == 0 {
		delete(k.held, name)
		if k.waiting {
			k.waiting = false
			k.Gone()
		}
	}
	return h.uploaded
}

// Release implements [queue.Objects].
func (k *Keeper) Release(text string, drop bool) {
	if k.letGo(payload.NameOf(text)) || !drop {
		return
	}
	ref, err := payload.ParseRef(text)
	if err != nil {
		return
	}
	k.drop(ref)
}

// drop deletes an object that no row refers to and that is not held.
func (k *Keeper) drop(ref payload.Ref) {
	k.mu.Lock()
	if len(k.dropped) < maxDropped {
		k.dropped = append(k.dropped, ref)
	}
	k.mu.Unlock()
	k.Gone()
}

// Notify lets f be called when a store is back, from the goroutine of Watch.
func (k *Keeper) Notify(f func()) { k.notify.Store(&f) }

// Refuse refuses uploads and large payloads with an error from now on; nil = they are taken.
func (k *Keeper) Refuse(reason *jobhost.Error) { k.refusal.Store(reason) }

// Refusal returns why large payloads are refused; nil = they aren't.
func (k *Keeper) Refusal() *jobhost.Error { return k.refusal.Load() }

// Gone implements [queue.Objects].
func (k *Keeper) Gone() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look anyway
	}
}
