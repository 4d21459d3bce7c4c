// Package payload keeps what is too large for a database: payloads and results
// of jobs, as objects outside of it, each behind a [Ref].
//
//	Set.Create ─► count, digest ─► zstd ─► AES-256-GCM ─► Store.Create ─► Commit ─► Ref
//	Set.Open   ◄─ size and digest checked ◄─ zstd ◄─ AES-256-GCM ◄─ Store.Open
//
// A [Set] is the part that is written once: it names objects, picks the store,
// compresses, encrypts and checks what comes back. A [Store] is a driver, which
// only keeps bytes. Everything is a stream, so an object of any size takes
// about a megabyte of memory on its way.
package payload

import (
	"context"
	"errors"
	"io"
)

// Store keeps objects: bytes under a key. Keys consist of lower-case letters,
// digits and dashes, are at most [MaxKeyBytes] long, and begin with the time
// at which they were made, so their order is that of age. A key is never
// written twice. What a driver must guarantee stands here and is checked by
// payloadtest. All methods may be called from many goroutines.
type Store interface {
	// Create begins an object. Nothing of it can be seen before its Commit.
	// ctx is that of the object until its end.
	Create(ctx context.Context, key string) (Object, error)

	// Open returns the bytes of an object. They may come with errors while
	// they are read. ctx is that of the reader until it is closed. Errors:
	// [ErrNotFound], also as late as in the first read.
	Open(ctx context.Context, key string) (io.ReadCloser, error)

	// Delete removes objects. One that isn't there is fine. After an error any
	// of them may be gone, and it is safe to delete all of them again.
	Delete(ctx context.Context, keys []string) error

	// List returns up to limit keys after the given one, in ascending order;
	// fewer mean that there are no more. What has no key of this package for a
	// name is left out. Objects that come or go during the call may be in it or not.
	List(ctx context.Context, after string, limit int) ([]string, error)

	// Close frees the store. Objects and readers must be closed before.
	Close() error
}

// Spacious is what a store may implement besides, of which the space comes to an end.
type Spacious interface {
	// Free returns how many bytes can still be written.
	Free() (int64, error)
}

// Sweeper is what a store may implement besides, in which uploads that were cut
// off leave something that no list shows and that doesn't expire.
type Sweeper interface {
	// Sweep removes what is left of uploads that were cut off days ago.
	Sweep(ctx context.Context) error
}

// Object is an object that is being written, by one goroutine.
type Object interface {
	// Write adds bytes and keeps no reference to them. After an error nothing
	// helps but Abort.
	io.Writer
	// Commit makes the object visible, whole and durable: it is there after
	// power loss. After an error it may or may not be there. Nothing else may
	// be called after it but Abort.
	Commit() error
	// Abort removes what there is of an object that is not to be, also when its
	// context has ended. After Commit it does nothing if that succeeded.
	Abort()
}

// Errors of stores and sets, distinguished by [errors.Is].
var (
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("there is no such object")
	// ErrCorrupt: the bytes are not those that were written.
	ErrCorrupt = errors.New("the object is damaged")
	// ErrNoKey: the object is sealed with a key that the set doesn't have.
	ErrNoKey = errors.New("the key of the object is not there")
	// ErrNoStore: the object is in a store that the set doesn't have.
	ErrNoStore = errors.New("the store of the object is not there")
	// ErrTooLarge: more was written than the limit allows.
	ErrTooLarge = errors.New("the content is over its limit")
	// ErrBusy: objects can't be deleted now, since they are being copied.
	ErrBusy = errors.New("the store is being copied")
)

// Permanent reports whether an error of reading an object will come again: the
// object is gone or damaged, or can't be opened by this set.
func Permanent(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNoKey) || errors.Is(err, ErrNoStore)
}
