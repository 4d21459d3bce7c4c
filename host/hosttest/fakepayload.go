package hosttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"github.com/jobhost/jobhost"
)

// fakeUpload is a payload that waits for its job, or has found it.
type fakeUpload struct {
	data  []byte
	taken bool
}

// redeemLocked gives a spec the payload that it refers to.
func (f *Fake) redeemLocked(spec *jobhost.Spec) (*fakeUpload, error) {
	if spec.PayloadRef == "" {
		return nil, nil
	}
	upload := f.uploads[spec.PayloadRef]
	if upload == nil {
		return nil, problem(jobhost.CodeInvalid, "payload_ref", "there is no such upload")
	}
	spec.Payload, spec.PayloadRef = upload.data, ""
	return upload, nil
}

// Upload implements [jobhost.PayloadStorer].
func (f *Fake) Upload(_ context.Context, r io.Reader) (jobhost.Upload, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return jobhost.Upload{}, err
	}
	sum := sha256.Sum256(data)
	upload := jobhost.Upload{
		Ref: "fake." + jobhost.NewID(), Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
		ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uploads[upload.Ref] = &fakeUpload{data: data}
	return upload, nil
}

// OpenPayload implements [jobhost.PayloadStorer].
func (f *Fake) OpenPayload(_ context.Context, id string) (jobhost.Content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	job, err := f.findLocked(id)
	if err != nil {
		return jobhost.Content{}, err
	}
	return contentOf(job.spec.Payload), nil
}

// OpenResult implements [jobhost.PayloadStorer].
func (f *Fake) OpenResult(ctx context.Context, id string, task int) (jobhost.Content, error) {
	result, err := f.Result(ctx, id, task)
	return contentOf(result.Data), err
}

func contentOf(data []byte) jobhost.Content {
	return jobhost.Content{ReadCloser: io.NopCloser(bytes.NewReader(data)), Size: int64(len(data))}
}
