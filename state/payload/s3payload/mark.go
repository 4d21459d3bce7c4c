package s3payload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/jobhost/jobhost/state/payload"
)

var _ payload.Marker = (*Store)(nil)

// markName is the name of a mark, which is none of an object.
func (s *Store) markName(name string) string { return s.prefix + "mark-" + name }

// SetMark implements [payload.Marker].
func (s *Store) SetMark(ctx context.Context, name string, text []byte) error {
	if err := payload.CheckName(name); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	opts := minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true}
	_, err := s.core.PutObject(ctx, s.bucket, s.markName(name), bytes.NewReader(text), int64(len(text)), "", hex.EncodeToString(sum[:]), opts)
	return err
}

// Mark implements [payload.Marker].
func (s *Store) Mark(ctx context.Context, name string) ([]byte, error) {
	body, _, _, err := s.core.GetObject(ctx, s.bucket, s.markName(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, explain(err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, payload.MaxMarkBytes))
	if err != nil {
		return nil, explain(err)
	}
	return text, nil
}
