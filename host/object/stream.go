package object

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/state/payload"
)

// Writer is an object being written. It must be ended by Commit or Abort.
type Writer struct {
	*payload.Writer
	k     *Keeper
	stall *stallTimer
	done  bool
}

// Create begins an object of up to limit bytes, which is held. While the store is
// unavailable it fails at once, so that nothing waits in vain.
func (k *Keeper) Create(ctx context.Context, limit int64) (*Writer, error) {
	if away := k.Unwritten(); away != nil && time.Since(away.Since) > late {
		return nil, errUnwritten(&queue.StoreFault{Store: away.Store, Verb: away.Verb, Err: errAway})
	}
	return k.begin(ctx, limit)
}

// begin is Create, even while the store is unavailable.
func (k *Keeper) begin(ctx context.Context, limit int64) (*Writer, error) {
	p := newStallTimer(ctx)
	p.begin(answerWithin)
	w, err := k.cfg.Set.Create(p.ctx, limit)
	if gaveUp, err := p.end(err); err != nil { // a successful begin proves nothing yet
		p.close()
		if gaveUp {
			return nil, err
		}
		return nil, explainWrite(k.met(payload.Put, k.toTarget(), err))
	}
	k.hold(w.Name(), false)
	return &Writer{Writer: w, k: k, stall: p}, nil
}

// toTarget returns a reference without an object in the store for new objects.
func (k *Keeper) toTarget() payload.Ref { return payload.Ref{Store: k.target.store} }

// Write adds to the object. Errors: [payload.ErrTooLarge], the cause of the
// context, unavailable.
func (w *Writer) Write(p []byte) (int, error) {
	w.stall.begin(writeWithin(mostInPart))
	n, err := w.Writer.Write(p)
	if gaveUp, err := w.stall.end(err); err != nil {
		if gaveUp {
			return n, err
		}
		return n, explainWrite(w.k.met(payload.Put, w.k.toTarget(), err))
	}
	return n, nil
}

// Commit makes the object durable. It is held until [Keeper.Release].
func (w *Writer) Commit() (payload.Ref, error) {
	w.stall.begin(writeWithin(w.Size()))
	ref, err := w.Writer.Commit()
	if err = w.k.verdict(w.stall, payload.Put, w.k.toTarget(), err); err != nil {
		return ref, explainWrite(err)
	}
	w.done = true
	w.stall.close()
	return ref, nil
}

// Abort removes the object. After Commit it does nothing.
func (w *Writer) Abort() {
	if !w.done {
		w.done = true
		w.Writer.Abort()
		w.stall.close()
		w.k.letGo(w.Name())
	}
}

// explainWrite converts an error of writing. The cause is for operators.
func explainWrite(err error) error {
	if fault, its := errors.AsType[*queue.StoreFault](err); its {
		return errUnwritten(fault)
	}
	return err // the caller's
}

func errUnwritten(fault *queue.StoreFault) error {
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: "payload", Message: "the payload store takes nothing now", Cause: fault,
		Hint: "try again later; the host's log says more", RetryAfter: time.Second,
	}
}

// Open implements [queue.Objects].
func (k *Keeper) Open(ctx context.Context, ref payload.Ref) (io.ReadCloser, error) {
	p := newStallTimer(ctx)
	p.begin(answerWithin)
	r, err := k.cfg.Set.Open(p.ctx, ref)
	if err := k.verdict(p, payload.Get, ref, err); err != nil {
		p.close()
		return nil, explain(err)
	}
	return &reader{r, k, p, ref}, nil
}

// reader reads an object, judges its store and converts its errors.
type reader struct {
	io.ReadCloser
	k     *Keeper
	stall *stallTimer
	ref   payload.Ref
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	r.stall.begin(answerWithin)
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF {
		_ = r.k.verdict(r.stall, payload.Get, r.ref, nil)
		return n, err
	}
	if err = r.k.verdict(r.stall, payload.Get, r.ref, err); err != nil {
		err = explain(err)
	}
	return n, err
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.stall.close()
	return r.ReadCloser.Close()
}

// explain converts an error of reading, with the cause for operators.
func explain(err error) error {
	fault, its := errors.AsType[*queue.StoreFault](err)
	switch {
	case its && fault.Young:
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "the payload store doesn't have the content, which is new, or doesn't show it yet",
			Cause: err, RetryAfter: time.Second,
		}
	case its:
		return &jobhost.Error{
			Code: jobhost.CodeUnavailable, Message: "the payload store doesn't answer", Cause: err, RetryAfter: time.Second,
		}
	case errors.Is(err, payload.ErrNotFound):
		return &jobhost.Error{Code: jobhost.CodeNotFound, Message: "the content is gone from its payload store", Cause: err}
	case errors.Is(err, payload.ErrCorrupt):
		return &jobhost.Error{Code: jobhost.CodeDamaged, Message: "the content is damaged in its payload store", Cause: err}
	case payload.Permanent(err):
		return &jobhost.Error{Code: jobhost.CodeInternal, Message: "the host has not the payload store or the key of the content", Cause: err}
	}
	return err // the caller's
}
