// Package object stores the payloads and results that are too large for the queue's store as objects
// in payload stores, and removes them when no row refers to them any more. It implements
// [queue.Objects].
//
//	Put, Create, Upload ─► object, durable ─► commit of the row that refers to it
//	row removed ─► reference gone, in the same commit ─► janitor: object deleted ─► reference forgotten
//	crash in between ─► sweep: objects that no row refers to, when they are old enough
//
// Objects in use by this process are held, so that neither janitor nor sweep mistakes them for
// garbage.
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

// Config configures a keeper. Zero values mean the defaults in brackets.
type Config struct {
	// Set are the stores of the objects.
	Set *payload.Set
	// Store knows which objects are referred to.
	Store record.Store
	// MaxUpload bounds an upload, in bytes [1 GiB].
	MaxUpload int64
	// OrphanAge is the age from which the sweep removes an object that no row refers to and this
	// process doesn't hold [2 d].
	OrphanAge time.Duration
	// UploadFor is how long an upload waits for its job [1 h], at most OrphanAge.
	UploadFor time.Duration
	// YoungFor is the age up to which an object reported missing may merely not be visible in its
	// store yet [5 min]; less than 0 = never.
	YoungFor time.Duration
	// KeepBytes bounds the results waiting in memory for a store [64 MiB].
	KeepBytes int64
	// Away is called when a store becomes unreadable or unwritable, and when it works again. It must
	// not block [none].
	Away func(store string, verb payload.Verb, away bool)
	// Kept is called with the number of results waiting for a store. It must not block [none].
	Kept func(results int)
	// Removed is called with the number of removed objects, and whether they were orphans. It must not
	// block [none].
	Removed func(objects int, orphans bool)
	// Place is the location of Store's database, unique among running hosts; empty = it can't be
	// copied.
	Place string
	// Contested is called with whether another running host has the same objects in a store. It must
	// not block [none].
	Contested func(store string, contested bool)
	Logger    *slog.Logger // [discard]
}

// Keeper stores and removes objects. It is safe for concurrent use.
type Keeper struct {
	cfg    Config
	secret []byte           // signs upload tokens
	own    []payload.Origin // origins whose objects are removed
	wake   chan struct{}
	swept  map[string]string // by store, the key up to which objects were judged; only used by Run
	calm   time.Time         // no sweep before this time; set before Run
	owners *ownerships       // only used by Run

	sides   map[sideKey]*side
	target  *side                  // the writing side of the store for new objects
	changed chan struct{}          // wakes Watch
	notify  atomic.Pointer[func()] // called when a store is back
	refusal atomic.Pointer[jobhost.Error]
	room    room
	removed removals

	mu       sync.Mutex          // protects the fields below
	kept     []*kept             // oldest first
	ended    bool                // nothing more is kept
	held     map[string]*holding // by name
	deleting map[string]bool     // names that are being deleted
	dropped  []payload.Ref       // objects without references
	waiting  bool                // an object to be deleted is held
}

// holding is an object that an operation in progress may soon refer to.
type holding struct {
	n        int
	uploaded bool // don't drop it: the uploader may submit it again
}

var _ queue.Objects = (*Keeper)(nil)

// maxDropped bounds the dropped objects that are not deleted yet; the sweep takes care of the rest.
const maxDropped = 4096

// New returns a keeper; Run does the cleaning.
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

// letGo releases a held object and reports whether it was an upload.
func (k *Keeper) letGo(name string) (uploaded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.held[name]
	if h == nil {
		return true // it was never held, so it must not be dropped
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

// Notify sets a function to be called by Watch when a store is back.
func (k *Keeper) Notify(f func()) { k.notify.Store(&f) }

// Refuse refuses uploads and large payloads with an error from now on; nil = they are accepted again.
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
