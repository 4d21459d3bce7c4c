package s3payload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/jobhost/jobhost/state/payload"
)

const (
	partBytes   = 8 << 20          // of a part; S3 wants 5 MiB at least and takes 10,000 parts
	firstBytes  = 256 << 10        // of the first buffer: most objects are small
	abortWithin = 10 * time.Second // a removal after an error
	contentType = "application/octet-stream"
)

// upload is an object in the making.
type upload struct {
	store *Store
	ctx   context.Context // of its making
	name  string
	part  []byte // not sent yet
	id    string // of the multipart upload; empty = there is none
	parts []minio.CompletePart
	done  bool
}

// Create implements [payload.Store].
func (s *Store) Create(ctx context.Context, key string) (payload.Object, error) {
	return &upload{store: s, ctx: ctx, name: s.prefix + key, part: make([]byte, 0, firstBytes)}, nil
}

// Write implements [payload.Object].
func (u *upload) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	written := 0
	for len(p) > 0 {
		n := min(len(p), partBytes-len(u.part))
		u.part = append(u.part, p[:n]...)
		p, written = p[n:], written+n
		if len(u.part) == partBytes {
			if err := u.send(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// send sends what is there as a part.
func (u *upload) send() error {
	core := &u.store.core
	if u.id == "" {
		id, err := core.NewMultipartUpload(u.ctx, u.store.bucket, u.name, minio.PutObjectOptions{ContentType: contentType})
		if err != nil {
			return err
		}
		u.id = id
	}
	number := len(u.parts) + 1
	part, err := core.PutObjectPart(u.ctx, u.store.bucket, u.name, u.id, number, bytes.NewReader(u.part), int64(len(u.part)),
		minio.PutObjectPartOptions{Sha256Hex: u.digest(), DisableContentSha256: true})
	if err != nil {
		return err
	}
	u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: part.ETag})
	u.part = u.part[:0]
	return nil
}

// digest is that of what is there, which the server compares: the signature of
// the request is over it. It takes the place of a stream of signed pieces, which
// the library would make for plain HTTP, and which fewer servers know.
func (u *upload) digest() string {
	sum := sha256.Sum256(u.part)
	return hex.EncodeToString(sum[:])
}

// Commit implements [payload.Object].
func (u *upload) Commit() error {
	core, opts := &u.store.core, minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true}
	if u.id == "" {
		_, err := core.PutObject(u.ctx, u.store.bucket, u.name, bytes.NewReader(u.part), int64(len(u.part)), "", u.digest(), opts)
		u.done = err == nil
		return err
	}
	if len(u.part) > 0 {
		if err := u.send(); err != nil {
			return err
		}
	}
	_, err := core.CompleteMultipartUpload(u.ctx, u.store.bucket, u.name, u.id, u.parts, opts)
	u.done = err == nil
	return err
}

// Abort implements [payload.Object].
func (u *upload) Abort() {
	if u.done {
		return
	}
	u.done, u.part = true, nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortWithin)
	defer cancel()
	if u.id != "" {
		_ = u.store.core.AbortMultipartUpload(ctx, u.store.bucket, u.name, u.id)
	}
	// If it was Commit that failed, the object may be there all the same.
	_ = u.store.core.RemoveObject(ctx, u.store.bucket, u.name, minio.RemoveObjectOptions{})
}
