package object

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// commit commits operations, all or none, and waits for the result.
func commit(ctx context.Context, store record.Store, ops ...record.Op) error {
	answer := make(chan error, 1)
	store.Commit(ops, func(results []record.OpResult, err error) {
		for _, result := range results {
			err = errors.Join(err, result.Err)
		}
		answer <- err
	})
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Upload stores everything that r has until a job takes it or it expires.
func (k *Keeper) Upload(ctx context.Context, r io.Reader) (jobhost.Upload, error) {
	if refusal := k.refusal.Load(); refusal != nil {
		return jobhost.Upload{}, refusal
	}
	w, err := k.Create(ctx, k.cfg.MaxUpload)
	if err != nil {
		return jobhost.Upload{}, err
	}
	defer w.Abort()
	source := &reading{r: r}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, source, make([]byte, 64<<10)); err != nil {
		switch {
		case errors.Is(err, payload.ErrTooLarge):
			return jobhost.Upload{}, &jobhost.Error{
				Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("the upload is larger than %d bytes", k.cfg.MaxUpload),
				Hint: "raise payload.max in the manifest",
			}
		case source.err != nil:
			return jobhost.Upload{}, source.err
		}
		return jobhost.Upload{}, err
	}
	ref, err := w.Commit()
	if err != nil {
		return jobhost.Upload{}, err
	}
	k.letGo(ref.Name()) // from now on its age protects it
	made, _ := payload.KeyTime(ref.Key)
	// From the end of the upload, but limited so that the sweep can't come
	// first: both look at the store's clock, also on another host.
	expires := k.cfg.Store.Now().Add(k.cfg.UploadFor)
	if last := made.Add(max(k.cfg.OrphanAge, k.cfg.UploadFor)); expires.After(last) {
		expires = last
	}
	return jobhost.Upload{
		Ref: k.token(ref, expires), Size: ref.Size, SHA256: hex.EncodeToString(ref.Digest[:]),
		ExpiresAt: expires.UTC().Truncate(time.Millisecond),
	}, nil
}

// reading records the error of a reader, which is the caller's own.
type reading struct {
	r   io.Reader
	err error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// token returns an uploader's token: the reference and its expiry, with a code
// that only hosts of this store can compute. It can't be forged for another
// uploader's object, nor for one that isn't an upload.
//
//	u1.base64(reference|milliseconds).base64(HMAC-SHA256)
func (k *Keeper) token(ref payload.Ref, expires time.Time) string {
	text := ref.String() + "|" + strconv.FormatInt(expires.UnixMilli(), 10)
	return tokenPrefix + encoding.EncodeToString([]byte(text)) + "." + encoding.EncodeToString(k.code(text))
}

const tokenPrefix = "u1."

// encoding is strict, so that a token has only one spelling.
var encoding = base64.RawURLEncoding.Strict()

func (k *Keeper) code(text string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte("upload " + text))
	return mac.Sum(nil)
}

// read parses a token, if it is one of ours.
func (k *Keeper) read(token string) (ref payload.Ref, expires time.Time, ok bool) {
	body, there := strings.CutPrefix(token, tokenPrefix)
	first, second, dotted := strings.Cut(body, ".")
	text, err := encoding.DecodeString(first)
	code, err2 := encoding.DecodeString(second)
	// The decoder skips line ends.
	if !there || !dotted || strings.ContainsAny(token, "\r\n") || err != nil || err2 != nil || !hmac.Equal(code, k.code(string(text))) {
		return payload.Ref{}, time.Time{}, false
	}
	name, ms, _ := strings.Cut(string(text), "|")
	n, err := strconv.ParseInt(ms, 10, 64)
	ref, err2 = payload.ParseRef(name)
	return ref, time.UnixMilli(n), err == nil && err2 == nil
}

// Redeem implements [queue.Objects].
func (k *Keeper) Redeem(ctx context.Context, token string) (payload.Ref, error) {
	ref, expires, ok := k.read(token)
	if !ok {
		return payload.Ref{}, errToken("payload_ref is not what an upload was answered with", "upload the payload again: POST /v1/payloads")
	}
	if k.cfg.Store.Now().After(expires) {
		return ref, errToken("the upload has expired", "upload the payload again")
	}
	if !k.hold(ref.Name(), true) {
		return ref, errToken("the upload is gone", "upload the payload again")
	}
	r, err := k.Open(ctx, ref)
	if err == nil {
		return ref, r.Close()
	}
	k.letGo(ref.Name())
	fault, its := errors.AsType[*queue.StoreFault](err)
	switch {
	case its && fault.Young:
		return ref, err // it may be there at the next try
	case errors.Is(err, payload.ErrNotFound):
		return ref, errToken("the upload is gone", "upload the payload again: each is for one job")
	}
	return payload.Ref{}, err
}

func errToken(message, hint string) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Field: "payload_ref", Message: message, Hint: hint}
}
