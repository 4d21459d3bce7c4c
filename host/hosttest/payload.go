package hosttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing/iotest"
	"time"

	"github.com/jobhost/jobhost"
)

// large is a payload that is neither in a submit nor in a store of jobs.
func large(fill string) []byte { return bytes.Repeat([]byte(fill), 100_000/len(fill)) }

func (s *setup) upload(data []byte) jobhost.Upload {
	s.Helper()
	// In small pieces, and of a size that isn't announced.
	upload, err := s.server.Upload(s.ctx, iotest.HalfReader(bytes.NewReader(data)))
	if err != nil {
		s.Fatalf("upload: %v", err)
	}
	sum := sha256.Sum256(data)
	if upload.Size != int64(len(data)) || upload.SHA256 != hex.EncodeToString(sum[:]) || !upload.ExpiresAt.After(time.Now()) {
		s.Fatalf("upload: got %+v", upload)
	}
	return upload
}

// wantContent reads a content to its end.
func (s *setup) wantContent(what string, content jobhost.Content, err error, want []byte) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err)
	}
	defer content.Close()
	got, err := io.ReadAll(content)
	if err != nil || !bytes.Equal(got, want) || content.Size != int64(len(want)) {
		s.Fatalf("%s: got %d bytes of %d, %v; want %d", what, len(got), content.Size, err, len(want))
	}
}

func testPayloads(s *setup) {
	for _, data := range [][]byte{large("large ")[:60_000], []byte("small"), nil} { // what the worker has room for
		upload := s.upload(data)
		receipt, err := s.server.Submit(s.ctx, jobhost.Spec{Worker: "test", Entry: "echo", PayloadRef: upload.Ref})
		if err != nil {
			s.Fatalf("submit: %v", err)
		}
		job, err := s.server.Wait(s.ctx, receipt.ID)
		if err != nil || job.State != jobhost.Succeeded {
			s.Fatalf("got %+v, %v", job, err)
		}
		if job, err = s.server.Job(s.ctx, receipt.ID); err != nil || job.PayloadSize != len(data) || job.Tasks[0].ResultSize != len(data) {
			s.Fatalf("got %+v, %v", job, err)
		}
		content, err := s.server.OpenPayload(s.ctx, receipt.ID)
		s.wantContent("payload", content, err, data)
		content, err = s.server.OpenResult(s.ctx, receipt.ID, 0)
		s.wantContent("result", content, err, data)
		result, err := s.server.Result(s.ctx, receipt.ID, 0)
		if err != nil || !bytes.Equal(result.Data, data) {
			s.Fatalf("result: %d bytes, %v", len(result.Data), err)
		}
	}
}

// testPayloadsSame submits the same content in different ways: it is the same job.
func testPayloadsSame(s *setup) {
	data := large("same ")
	spec := later()
	spec.ID, spec.Payload, spec.PayloadRef = "same", nil, s.upload(data).Ref
	submit := func(spec jobhost.Spec) jobhost.Receipt {
		s.Helper()
		receipt, err := s.server.Submit(s.ctx, spec)
		if err != nil {
			s.Fatalf("submit: %v", err)
		}
		return receipt
	}
	if submit(spec).Deduplicated {
		s.Fatal("the first one was there before")
	}
	again := spec
	again.PayloadRef = s.upload(data).Ref
	inline := spec
	inline.PayloadRef, inline.Payload = "", data
	for _, other := range []jobhost.Spec{spec, again, inline} {
		if !submit(other).Deduplicated {
			s.Fatalf("the same content makes another job: %.60q", other.PayloadRef)
		}
	}
	other := spec
	other.PayloadRef = s.upload(large("other ")).Ref
	_, err := s.server.Submit(s.ctx, other)
	s.wantCode(err, jobhost.CodeConflict)
	if job := s.job("same"); job.PayloadSize != len(data) {
		s.Fatalf("got %+v", job)
	}
	content, err := s.server.OpenPayload(s.ctx, "same")
	s.wantContent("payload", content, err, data)
}

func testPayloadsRefused(s *setup) {
	upload := s.upload(large("once "))
	spec := later()
	spec.Payload, spec.PayloadRef = nil, upload.Ref
	if _, err := s.server.Submit(s.ctx, spec); err != nil {
		s.Fatal(err)
	}
	_, err := s.server.Submit(s.ctx, spec)
	s.wantCode(err, jobhost.CodeConflict) // it is another job's

	middle := len(upload.Ref) / 2
	flipped := "A"
	if upload.Ref[middle:middle+1] == "A" {
		flipped = "B"
	}
	for _, ref := range []string{
		"x", upload.Ref + "A", upload.Ref[:middle] + flipped + upload.Ref[middle+1:], "../../etc/passwd", strings.Repeat("a", jobhost.MaxRefBytes+1), "a\x00b",
	} {
		_, err := s.server.Submit(s.ctx, jobhost.Spec{Worker: "test", PayloadRef: ref})
		s.wantCode(err, jobhost.CodeInvalid)
	}
	_, err = s.server.Submit(s.ctx, jobhost.Spec{Worker: "test", PayloadRef: s.upload(nil).Ref, Payload: []byte("too")})
	s.wantCode(err, jobhost.CodeInvalid)

	broken := errors.New("the source broke")
	if _, err := s.server.Upload(s.ctx, io.MultiReader(bytes.NewReader(large("half ")), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		s.Fatalf("upload: got %v, want the reader's error", err)
	}
	for _, open := range []func() (jobhost.Content, error){
		func() (jobhost.Content, error) { return s.server.OpenPayload(s.ctx, "nobody") },
		func() (jobhost.Content, error) { return s.server.OpenResult(s.ctx, "nobody", 0) },
	} {
		_, err := open()
		s.wantCode(err, jobhost.CodeNotFound)
	}
}
