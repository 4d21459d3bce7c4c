package queue

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// Objects keeps payloads and results that are too large for the store. An
// object is held from the moment it is made or redeemed until Release: it
// is not taken for one that no row refers to.
type Objects interface {
	// Put makes an object of data, durably. Errors: unavailable.
	Put(ctx context.Context, data []byte) (payload.Ref, error)
	// Redeem returns what was uploaded, by the token that the uploader got. With an
	// error it is not held; the reference comes with it if the upload is only
	// too old or gone, so that a job which took it can be found.
	Redeem(ctx context.Context, token string) (payload.Ref, error)
	// Open reads an object.
	Open(ctx context.Context, ref payload.Ref) (io.ReadCloser, error)
	// Release ends the holding of an object. It is live now, or drop says that no
	// row refers to it: then it is deleted, unless it is an upload. It
	// doesn't block.
	Release(ref string, drop bool)
	// Gone says that there are references in the store that are gone. It doesn't block.
	Gone()
}

// objects are what a queue keeps outside of its store.
type objects struct {
	Objects       // nil = everything is in the store
	threshold int // bytes of the largest payload that is kept in the store
}

// uploaded returns what a spec has for a payload_ref, also with an error that
// need not matter to a job which is there already. A small payload is read into the
// spec too, for the digest of its job: it is the same wherever the payload is. The job
// keeps the object all the same, since an upload is for one job.
func (o objects) uploaded(ctx context.Context, spec *jobhost.Spec) (*payload.Ref, error) {
	if spec.PayloadRef == "" {
		return nil, nil
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if o.Objects == nil {
		return nil, &jobhost.Error{Code: jobhost.CodeInvalid, Field: "payload_ref", Message: "this host keeps no uploads"}
	}
	ref, err := o.Objects.Redeem(ctx, spec.PayloadRef)
	if err != nil {
		if ref == (payload.Ref{}) {
			return nil, err
		}
		_ = o.readSmall(ctx, spec, ref) // it may be there still
		return &ref, err
	}
	if err := o.readSmall(ctx, spec, ref); err != nil {
		o.Objects.Release(ref.String(), false)
		return nil, err
	}
	return &ref, nil
}

// readSmall reads a payload into its spec, if it is small.
func (o objects) readSmall(ctx context.Context, spec *jobhost.Spec, ref payload.Ref) error {
	if ref.Size > wholeDigest {
		return nil
	}
	r, err := o.Objects.Open(ctx, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err == nil {
		spec.Payload, spec.PayloadRef = data, ""
	}
	return err
}

// offload puts a payload that is too large for the store elsewhere.
func (o objects) offload(ctx context.Context, job *record.JobSpec) error {
	if o.Objects == nil || len(job.Payload) <= o.threshold {
		return nil
	}
	ref, err := o.Objects.Put(ctx, job.Payload)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	job.Ref, job.Payload = ref.String(), nil
	return nil
}

// releaseJob ends the holding of a job's object when the fate of its submit is known.
func (o objects) releaseJob(job *record.JobSpec, result record.OpResult) {
	if job.Ref != "" {
		o.Objects.Release(job.Ref, refusedFor(result))
	}
}

// refusedFor reports whether an operation was surely not applied. After a fault
// of the store that is unknown until the next start.
func refusedFor(result record.OpResult) bool {
	code := jobhost.CodeOf(result.Err)
	return result.Existing || errors.Is(result.Err, record.ErrFenced) || code == jobhost.CodeConflict || code == jobhost.CodeExhausted
}

// releaseResult is releaseJob for a settlement with a result.
func (o objects) releaseResult(op *record.Settle, result record.OpResult) {
	if op.ResultRef != "" {
		o.Objects.Release(op.ResultRef, refusedFor(result))
	}
}

// openRef reads the object of a reference in the store.
func (o objects) openRef(ctx context.Context, text string) (jobhost.Content, error) {
	ref, err := payload.ParseRef(text)
	if err != nil {
		return jobhost.Content{}, err
	}
	if o.Objects == nil {
		return jobhost.Content{}, payload.ErrNoStore
	}
	r, err := o.Objects.Open(ctx, ref)
	return jobhost.Content{ReadCloser: r, Size: ref.Size}, err
}

// tellGone wakes what deletes objects, and states that are elsewhere.
func (q *Queue) tellGone(result record.OpResult) {
	if !result.Gone {
		return
	}
	if q.cfg.Objects != nil {
		q.cfg.Objects.Gone()
	}
	if q.cfg.StatesGone != nil {
		q.cfg.StatesGone()
	}
}

// OpenInput returns the payload of a task that is not in its lease: see [JobSpec.Ref].
func (q *Queue) OpenInput(ctx context.Context, job *record.JobSpec) (jobhost.Content, error) {
	content, err := q.objects.openRef(ctx, job.Ref)
	if err != nil {
		return content, fmt.Errorf("open payload: %w", err)
	}
	return content, nil
}
