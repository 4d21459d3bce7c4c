package jobhost

import (
	"context"
	"io"
	"time"
)

// PayloadStorer stores payloads and results that are too large to travel with a job or an answer.
type PayloadStorer interface {
	// Upload stores all of r as the payload of a future job: [Spec.PayloadRef].
	// It reads r to its end; after an error nothing is kept. Errors: those of
	// r, too_large, unavailable.
	Upload(ctx context.Context, r io.Reader) (Upload, error)
	// OpenPayload returns the payload of a job, whatever its size. The caller
	// closes it. Errors: not_found.
	OpenPayload(ctx context.Context, id string) (Content, error)
	// OpenResult is [Reader.Result] for results of any size.
	OpenResult(ctx context.Context, id string, task int) (Content, error)
}

// Upload is a payload that waits for its job.
type Upload struct {
	// Ref is the value for [Spec.PayloadRef]. It can't be guessed, and anyone who
	// has it may submit a job with it.
	Ref    string `json:"payload_ref"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // of the content, in lower-case hex
	// ExpiresAt is when it is removed unless a job has claimed it.
	ExpiresAt time.Time `json:"expires_at"`
}

// Content is a payload or a result as a stream. A read error means that the
// content is incomplete or damaged; io.EOF is returned only after everything
// was read and verified.
type Content struct {
	io.ReadCloser
	Size int64 // in bytes
}

// MaxWhole is the largest result that [Reader.Result] returns, in bytes.
const MaxWhole = 64 << 20

// MaxRefBytes bounds a [Spec.PayloadRef].
const MaxRefBytes = 512
