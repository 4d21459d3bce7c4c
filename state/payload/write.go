package payload

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Writer is an object in the making, for one goroutine. It must be ended with
// Commit or Abort.
type Writer struct {
	set    *Set
	ctx    context.Context // of the object, which is short
	ref    Ref
	limit  int64
	digest hash.Hash
	object Object
	// chain is what the content goes through, the last part first; to is where it begins.
	to      io.Writer
	buffer  *bufio.Writer
	sealer  io.WriteCloser // nil = it is not encrypted
	encoder *zstd.Encoder  // nil = it is not compressed
	err     error          // of a write; nothing goes on after it
	ended   bool
}

// bufferBytes is how much is handed to a store at once.
const bufferBytes = 64 << 10

// Create begins an object of up to limit bytes, in the store that takes what is
// written. ctx is that of all of its making. Errors are the store's.
func (s *Set) Create(ctx context.Context, limit int64) (*Writer, error) {
	key := s.newKey()
	w := &Writer{
		set: s, ctx: ctx, limit: limit, digest: sha256.New(),
		ref: Ref{Store: s.target.Name, Key: key, Zstd: s.cfg.Compress},
	}
	object, err := s.target.Store.Create(ctx, key)
	if err != nil {
		w.observe(err)
		return nil, w.wrap(err)
	}
	w.object, w.buffer = object, bufio.NewWriterSize(object, bufferBytes)
	w.to = w.buffer
	if n := len(s.cfg.Keys); n > 0 {
		w.ref.Sealed = s.cfg.Keys[n-1].ID
		if w.sealer, err = s.seals[w.ref.Sealed].NewEncryptingWriter(w.to, sealedWith(key)); err != nil {
			object.Abort()
			return nil, w.wrap(err)
		}
		w.to = w.sealer
	}
	if w.ref.Zstd {
		w.encoder = s.encoders.Get().(*zstd.Encoder)
		w.encoder.Reset(w.to)
		w.to = w.encoder
	}
	return w, nil
}

// Write adds to the content. Errors: [ErrTooLarge], when nothing of p was
// added, and the store's; after either only Abort is of use.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(p)) > w.limit-w.ref.Size {
		w.err = fmt.Errorf("%w of %d bytes", ErrTooLarge, w.limit)
		return 0, w.err
	}
	n, err := w.to.Write(p)
	w.digest.Write(p[:n])
	w.ref.Size += int64(n)
	if err != nil {
		w.err = w.wrap(err)
	}
	return n, w.err
}

// Size returns how much was written.
func (w *Writer) Size() int64 { return w.ref.Size }

// Name returns the name that the object will have: see [Ref.Name].
func (w *Writer) Name() string { return w.ref.Name() }

// Commit makes the object durable and returns the reference to it. After an
// error the object is aborted.
func (w *Writer) Commit() (Ref, error) {
	if w.err == nil {
		w.err = w.finish()
	}
	if err := w.err; err != nil {
		w.end(err)
		return Ref{}, err
	}
	w.digest.Sum(w.ref.Digest[:0])
	w.end(nil)
	return w.ref, nil
}

// finish ends what stands between the content and the store.
func (w *Writer) finish() error {
	if w.encoder != nil {
		if err := w.encoder.Close(); err != nil {
			return w.wrap(err)
		}
	}
	if w.sealer != nil {
		if err := w.sealer.Close(); err != nil {
			return w.wrap(err)
		}
	}
	if err := w.buffer.Flush(); err != nil {
		return w.wrap(err)
	}
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err := w.object.Commit(); err != nil {
		return w.wrap(err)
	}
	return nil
}

// Abort removes what there is of the object. After the end it does nothing.
func (w *Writer) Abort() {
	if !w.ended {
		w.end(errAborted)
	}
}

// errAborted is for a writer whose owner changed his mind.
var errAborted = errors.New("the object was aborted")

// end frees everything, and removes the object after an error.
func (w *Writer) end(err error) {
	if w.ended {
		return
	}
	w.ended = true
	if err != nil {
		w.object.Abort()
	}
	if w.encoder != nil {
		w.encoder.Reset(nil)
		w.set.encoders.Put(w.encoder)
		w.encoder = nil
	}
	w.err = errAborted
	w.observe(err)
}

func (w *Writer) observe(err error) {
	done := Done{Verb: Put, Store: w.ref.Store, Objects: 1, Bytes: w.ref.Size, Err: err}
	if err != nil {
		done.Objects, done.Bytes = 0, 0
	}
	if slices.ContainsFunc([]error{errAborted, ErrTooLarge}, func(e error) bool { return errors.Is(err, e) }) {
		done.Err = nil
	}
	w.set.observe(w.ctx, done)
}

func (w *Writer) wrap(err error) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return fmt.Errorf("write to payload store %s: %w", w.ref.Store, err)
}

// Put makes an object of all that r has, up to limit bytes. Nothing of it stays
// after an error. Errors: [ErrTooLarge], the cause of ctx, those of r as they
// are and those of the store.
func (s *Set) Put(ctx context.Context, r io.Reader, limit int64) (Ref, error) {
	w, err := s.Create(ctx, limit)
	if err != nil {
		return Ref{}, err
	}
	defer w.Abort()
	if _, err := io.CopyBuffer(onlyWriter{w}, r, make([]byte, bufferBytes)); err != nil {
		return Ref{}, err
	}
	return w.Commit()
}

// onlyWriter hides what else a writer can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }
