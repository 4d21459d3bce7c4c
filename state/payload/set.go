package payload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Config says what a set consists of.
type Config struct {
	// Stores are those that can be read; at least one. The last takes what is written.
	Stores []Named
	// Compress compresses what is written, by zstd.
	Compress bool
	// Keys open what they have sealed. The last seals what is written; none =
	// it is not encrypted.
	Keys []Key
	// Observe is called with everything that was done, and must not block; nil = no call.
	Observe func(Done)
	// Now tells the time, for the keys of objects; nil = the system's.
	Now func() time.Time
}

// Named is a store with the name that references know it by. A name must stand
// for the same objects as long as there are references to them.
type Named struct {
	Name  string
	Store Store
}

// Verb is what was done with objects. There are few, so that they can be labels
// of a metric.
type Verb string

// The verbs.
const (
	Put    Verb = "put"
	Get    Verb = "get"
	Delete Verb = "delete"
	List   Verb = "list"
)

// Verbs lists them.
func Verbs() []Verb { return []Verb{Put, Get, Delete, List} }

// Done tells what was done with objects of a store.
type Done struct {
	Verb    Verb
	Store   string
	Objects int
	Bytes   int64 // of content, with Put and Get
	Err     error // nil = it went well; a content over its limit and a caller who gave up are no errors of a store
}

// Set is a number of stores that objects can be in. Its methods may be called
// from many goroutines.
type Set struct {
	cfg      Config
	stores   map[string]Store
	target   Named
	seals    map[string]*seal
	encoders sync.Pool              // of *zstd.Encoder
	decoders sync.Pool              // of *zstd.Decoder
	origin   atomic.Pointer[Origin] // of what is made; nil = none
}

// SetOrigin says whose the objects are that are made from now on.
func (s *Set) SetOrigin(o Origin) { s.origin.Store(&o) }

// newKey returns the key of an object that is made now.
func (s *Set) newKey() string {
	if o := s.origin.Load(); o != nil {
		return o.NewKey(s.cfg.Now())
	}
	return NewKey(s.cfg.Now())
}

// New returns a set. It reports everything that is wrong with its
// configuration; the stores belong to it from then on, unless there is an error.
func New(cfg Config) (*Set, error) {
	s := &Set{cfg: cfg, stores: map[string]Store{}, seals: map[string]*seal{}}
	var errs []error
	if len(cfg.Stores) == 0 {
		errs = append(errs, errors.New("there is no store"))
	}
	for _, n := range cfg.Stores {
		if err := CheckName(n.Name); err != nil {
			errs = append(errs, fmt.Errorf("store %.64q: %w", n.Name, err))
		}
		if s.stores[n.Name] != nil {
			errs = append(errs, fmt.Errorf("store %s is there twice", n.Name))
		}
		s.stores[n.Name], s.target = n.Store, n
	}
	for _, key := range cfg.Keys {
		seal, err := key.seal()
		if err == nil && s.seals[key.ID] != nil {
			err = errors.New("it is there twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("key %.64q: %w", key.ID, err))
		}
		s.seals[key.ID] = seal
	}
	if s.cfg.Now == nil {
		s.cfg.Now = time.Now
	}
	if s.cfg.Observe == nil {
		s.cfg.Observe = func(Done) {}
	}
	s.encoders.New = func() any { return newEncoder() }
	s.decoders.New = func() any { return newDecoder() }
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("configure payload stores: %w", err)
	}
	return s, nil
}

// Stores returns the names of the stores, in the order in which they were given.
func (s *Set) Stores() []string {
	names := make([]string, len(s.cfg.Stores))
	for i, n := range s.cfg.Stores {
		names[i] = n.Name
	}
	return names
}

// Target returns the name of the store that takes what is written.
func (s *Set) Target() string { return s.target.Name }

// Free returns how many bytes the store that takes what is written has room for; ok is
// false when it can't tell.
func (s *Set) Free() (bytes int64, ok bool, err error) {
	spacious, ok := s.target.Store.(Spacious)
	if !ok {
		return 0, false, nil
	}
	bytes, err = spacious.Free()
	return bytes, true, err
}

// Delete removes objects; one that isn't there is fine. It goes on after an
// error of one store with the others.
func (s *Set) Delete(ctx context.Context, refs []Ref) error {
	keys := map[string][]string{}
	for _, r := range refs {
		keys[r.Store] = append(keys[r.Store], r.Key)
	}
	var errs []error
	for name, keys := range keys {
		errs = append(errs, s.DeleteKeys(ctx, name, keys))
	}
	return errors.Join(errs...)
}

// DeleteKeys removes objects of one store.
func (s *Set) DeleteKeys(ctx context.Context, name string, keys []string) error {
	store := s.stores[name]
	if store == nil {
		return fmt.Errorf("delete from payload store %q: %w", name, ErrNoStore)
	}
	err := store.Delete(ctx, keys)
	s.observe(ctx, Done{Verb: Delete, Store: name, Objects: len(keys), Err: err})
	if err != nil {
		return fmt.Errorf("delete from payload store %s: %w", name, err)
	}
	return nil
}

// Keys returns up to limit keys of a store, in order, that come after one and
// were made before a time; fewer mean that there are no more.
func (s *Set) Keys(ctx context.Context, name, after string, before time.Time, limit int) ([]string, error) {
	store := s.stores[name]
	if store == nil {
		return nil, fmt.Errorf("list payload store %q: %w", name, ErrNoStore)
	}
	keys, err := store.List(ctx, after, limit)
	s.observe(ctx, Done{Verb: List, Store: name, Objects: len(keys), Err: err})
	if err != nil {
		return nil, fmt.Errorf("list payload store %s: %w", name, err)
	}
	if i, _ := slices.BinarySearch(keys, keyTime(before)); i < len(keys) {
		return keys[:i], nil
	}
	return keys, nil
}

// Sweep lets a store remove what uploads have left in it that were cut off days ago:
// see [Sweeper].
func (s *Set) Sweep(ctx context.Context, name string) error {
	sweeper, ok := s.stores[name].(Sweeper)
	if !ok {
		return nil
	}
	err := sweeper.Sweep(ctx)
	s.observe(ctx, Done{Verb: Delete, Store: name, Err: err})
	if err != nil {
		return fmt.Errorf("sweep payload store %s: %w", name, err)
	}
	return nil
}

// observe tells of what was done. Who gave up has not found an error, nor who came during a copy.
func (s *Set) observe(ctx context.Context, d Done) {
	if d.Err != nil && (ctx.Err() != nil || errors.Is(d.Err, ErrBusy)) {
		d.Err = nil
		d.Objects = 0
	}
	s.cfg.Observe(d)
}

// Close closes the stores.
func (s *Set) Close() error {
	var errs []error
	for _, n := range s.cfg.Stores {
		errs = append(errs, n.Store.Close())
	}
	return errors.Join(errs...)
}

// Bounds of zstd: a window of 1 MiB, so that neither side takes more than a few
// megabytes, and nothing that asks for more is opened.
const zstdWindow = 1 << 20

func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) //nolint:forbidigo // the options are constant
	}
	return e
}

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) //nolint:forbidigo // the options are constant
	}
	return d
}
