package payload

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Open returns the content of an object. Its end comes only when size and
// digest are those of the reference. ctx is that of the reader until it is
// closed. Errors, of Open as of every read: [ErrNotFound], [ErrCorrupt],
// [ErrNoKey], [ErrNoStore] (for all of which see [Permanent]), the cause of
// ctx, and those of the store.
func (s *Set) Open(ctx context.Context, ref Ref) (io.ReadCloser, error) {
	r := &reader{set: s, ctx: ctx, ref: ref, left: ref.Size, digest: sha256.New()}
	if err := r.open(); err != nil {
		err = r.explain(err)
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// reader reads a content and checks it.
type reader struct {
	set     *Set
	ctx     context.Context // of the read
	ref     Ref
	source  *source // nil = it was not opened
	content io.Reader
	decoder *zstd.Decoder // nil = it is not compressed
	digest  hash.Hash
	left    int64
	err     error // the end, or a fault; it comes again with every read
}

func (r *reader) open() error {
	store := r.set.stores[r.ref.Store]
	if store == nil {
		return ErrNoStore
	}
	var sealed *seal
	if r.ref.Sealed != "" {
		if sealed = r.set.seals[r.ref.Sealed]; sealed == nil {
			return fmt.Errorf("%w: %s", ErrNoKey, r.ref.Sealed)
		}
	}
	object, err := store.Open(r.ctx, r.ref.Key)
	if err != nil {
		return err
	}
	r.source = &source{ReadCloser: object}
	r.content = r.source
	if sealed != nil {
		if r.content, err = sealed.NewDecryptingReader(r.content, sealedWith(r.ref.Key)); err != nil {
			return r.fault(err)
		}
	}
	if r.ref.Zstd {
		r.decoder = r.set.decoders.Get().(*zstd.Decoder)
		if err := r.decoder.Reset(r.content); err != nil {
			return r.fault(err)
		}
		r.content = r.decoder
	}
	return nil
}

// source remembers why a store's reader ended, so that an error of the network
// is not taken for damage of what it brought.
type source struct {
	io.ReadCloser
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.left == 0 {
		r.err = r.end()
		return 0, r.err
	}
	n, err := r.content.Read(p[:min(int64(len(p)), r.left)])
	r.digest.Write(p[:n])
	r.left -= int64(n)
	switch {
	case err == io.EOF && r.left == 0, err == nil:
		return n, nil
	case err == io.EOF:
		err = fmt.Errorf("it ends %d bytes too early", r.left)
	}
	r.err = r.explain(r.fault(err))
	return n, r.err
}

// end looks whether the content was whole, and is nothing but that.
func (r *reader) end() error {
	var more [1]byte
	n, err := io.ReadFull(r.content, more[:])
	switch {
	case n > 0:
		return r.explain(fmt.Errorf("%w: it is longer than %d bytes", ErrCorrupt, r.ref.Size))
	case !errors.Is(err, io.EOF):
		return r.explain(r.fault(err))
	case [32]byte(r.digest.Sum(nil)) != r.ref.Digest:
		return r.explain(fmt.Errorf("%w: its digest is another one", ErrCorrupt))
	}
	return io.EOF
}

// fault tells an error of the store from damage.
func (r *reader) fault(err error) error {
	if r.source != nil && r.source.err != nil {
		return r.source.err
	}
	return fmt.Errorf("%w: %v", ErrCorrupt, err) //nolint:errorlint // the library's error says no more than its text
}

func (r *reader) explain(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return fmt.Errorf("read object %s of payload store %s: %w", r.ref.Key, r.ref.Store, err)
}

// Close frees the reader. It tells of no error: what was read was checked.
func (r *reader) Close() error {
	if r.decoder != nil {
		_ = r.decoder.Reset(nil)
		r.set.decoders.Put(r.decoder)
		r.decoder = nil
	}
	if r.source != nil {
		_ = r.source.Close()
		r.source = nil
	}
	if r.content != nil || r.err == nil {
		done := Done{Verb: Get, Store: r.ref.Store, Objects: 1, Bytes: r.ref.Size - r.left}
		if r.err != nil && r.err != io.EOF {
			done.Err = r.err
		}
		r.set.observe(r.ctx, done)
	}
	r.content, r.err = nil, errClosed
	return nil
}

var errClosed = errors.New("read object: it is closed")
