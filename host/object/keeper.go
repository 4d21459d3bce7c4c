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
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// Config says what a keeper keeps, and where. Zero values mean the defaults in brackets.
type Config struct {
	// Set are the stores of the objects.
	Set *payload.Set
	// Store knows which of them are referred to.
	Store queue.Store
	// MaxUpload bounds an upload, in bytes [1 GiB].
	MaxUpload int64
	// OrphanAge is how old an object is that no row refers to, and that this
	// process doesn't hold, when the sweep removes it [2 d].
	OrphanAge time.Duration
	// UploadFor is how long an upload waits for its job [1 h], no longer than OrphanAge.
	UploadFor time.Duration
	// Removed is told how many objects were removed, and whether they were
	// orphans, and must not block [nobody].
	Removed func(objects int, orphans bool)
	Logger  *slog.Logger // [discard]
}

// Keeper keeps objects. All methods may be called from many goroutines.
type Keeper struct {
	cfg    Config
	secret []byte // of what uploaders are told
	origin payload.Origin
	wake   chan struct{}
	swept  map[string]string // by store, the key up to which objects were judged; only Run has it

	mu       sync.Mutex          // protects the fields below
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
	}
	var err error
	if k.secret, err = loadSecret(ctx, cfg.Store); err != nil {
		return nil, fmt.Errorf("open payloads: %w", err)
	}
	k.origin = originOf(k.secret)
	cfg.Set.SetOrigin(k.origin)
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
	if cfg.Removed == nil {
		cfg.Removed = func(int, bool) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

// Put implements [queue.Objects].
func (k *Keeper) Put(ctx context.Context, data []byte) (payload.Ref, error) {
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

// Writer is an object in the making. It must be ended by Commit or Abort.
type Writer struct {
	*payload.Writer
	k    *Keeper
	ctx  context.Context // of its making
	done bool
}

// Create begins an object of up to limit bytes, which is held.
func (k *Keeper) Create(ctx context.Context, limit int64) (*Writer, error) {
	w, err := k.cfg.Set.Create(ctx, limit)
	if err != nil {
		return nil, k.explainWrite(ctx, err)
	}
	k.hold(w.Name(), false)
	return &Writer{Writer: w, k: k, ctx: ctx}, nil
}

// Write adds to the object. Errors: [payload.ErrTooLarge], the cause of the
// context, unavailable.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		err = w.k.explainWrite(w.ctx, err)
	}
	return n, err
}

// explainWrite says what an error of writing means. The cause is for operators,
// and in their log.
func (k *Keeper) explainWrite(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, payload.ErrTooLarge):
		return err
	}
	k.cfg.Logger.Error("payload store takes nothing", logkey.Error, err)
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: "payload", Message: "the payload store takes nothing now", Cause: err,
		Hint: "try again later; the host's log says more", RetryAfter: time.Second,
	}
}

// Commit makes the object durable. It is held until [Keeper.Release].
func (w *Writer) Commit() (payload.Ref, error) {
	ref, err := w.Writer.Commit()
	if err != nil {
		return ref, w.k.explainWrite(w.ctx, err)
	}
	w.done = true
	return ref, nil
}

// Abort removes the object. After Commit it does nothing.
func (w *Writer) Abort() {
	if !w.done {
		w.done = true
		w.Writer.Abort()
		w.k.letGo(w.Name())
	}
}

// Open implements [queue.Objects].
func (k *Keeper) Open(ctx context.Context, ref payload.Ref) (io.ReadCloser, error) {
	r, err := k.cfg.Set.Open(ctx, ref)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return &explaining{r, ctx}, nil
}

// explaining explains the errors of a reader.
type explaining struct {
	io.ReadCloser
	ctx context.Context // of the read
}

// Read implements [io.Reader].
func (e *explaining) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = explain(e.ctx, err)
	}
	return n, err
}

// explain says what an error of reading means, with the cause for operators.
func explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, payload.ErrNotFound):
		return &jobhost.Error{Code: jobhost.CodeNotFound, Message: "the content is gone from its payload store", Cause: err}
	case errors.Is(err, payload.ErrCorrupt):
		return &jobhost.Error{Code: jobhost.CodeDamaged, Message: "the content is damaged in its payload store", Cause: err}
	case payload.Permanent(err):
		return &jobhost.Error{Code: jobhost.CodeInternal, Message: "the host has not the payload store or the key of the content", Cause: err}
	}
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Message: "the payload store doesn't answer", Cause: err, RetryAfter: time.Second,
	}
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
	k.mu.Lock()
	if len(k.dropped) < maxDropped {
		k.dropped = append(k.dropped, ref)
	}
	k.mu.Unlock()
	k.Gone()
}

// Gone implements [queue.Objects].
func (k *Keeper) Gone() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look anyway
	}
}
