package jobhost

import (
	"context"
	"io"
	"time"
)

// PayloadStorer keeps what is too large to travel with a job or with an answer.
type PayloadStorer interface {
	// Upload keeps all that r has, for the payload of a job: [Spec.PayloadRef].
	// It reads r to its end; nothing stays after an error. Errors: those of r,
	// too_large, unavailable.
	Upload(ctx context.Context, r io.Reader) (Upload, error)
	// OpenPayload returns the payload of a job, whatever its size. The caller
	// closes it. Errors: not_found.
	OpenPayload(ctx context.Context, id string) (Content, error)
	// OpenResult is [Reader.Result] for results of any size.
	OpenResult(ctx context.Context, id string, task int) (Content, error)
}

// Upload is a payload that waits for its job.
type Upload struct {
	// Ref is what [Spec.PayloadRef] names it by. It can't be guessed, and whoever
	// has it may submit a job with it.
	Ref    string `json:"payload_ref"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // of the content, in lower-case hex
	// ExpiresAt is when it is removed unless a job has taken it.
	ExpiresAt time.Time `json:"expires_at"`
}

// Content is a payload or a result as a stream. A read that fails means that it
// is not whole; its end comes only when everything was read and is what was
// written.
type Content struct {
	io.ReadCloser
	Size int64 // in bytes
}

// MaxWhole is the largest result that [Reader.Result] returns, in bytes.
const MaxWhole = 64 << 20

// MaxRefBytes bounds a [Spec.PayloadRef].
const MaxRefBytes = 512
