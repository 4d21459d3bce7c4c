package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// stored is a host with payload stores, whose worker "test" copies its input.
type stored struct {
	*hosttest.Host
	stop    func() error
	objects *payloadtest.Memory
	cfg     host.Config
}

func setupStored(t *testing.T, change ...func(*host.Config)) *stored {
	t.Helper()
	s := &stored{objects: payloadtest.NewMemory(), cfg: config(t)}
	w := &s.cfg.Workers[0]
	w.Plugin, w.Entry, w.Limits.OutputBytes = guests.Cat, "", 64<<20
	s.cfg.PayloadThreshold, s.cfg.MaxUpload = 1000, 1<<20
	for _, c := range change {
		c(&s.cfg)
	}
	s.start(t)
	return s
}

// start starts a host over the same stores.
func (s *stored) start(t *testing.T) {
	t.Helper()
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "one", Store: s.objects}}})
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Payloads = set
	s.Host, s.stop = run(t, s.cfg)
}

func bigText(n int) []byte { return bytes.Repeat([]byte("0123456789"), n/10) }

func (s *stored) upload(t *testing.T, data []byte) string {
	t.Helper()
	upload, err := s.Upload(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return upload.Ref
}

// awaitObjects returns when there are so many objects.
func (s *stored) awaitObjects(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for s.objects.Len() != n {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("there are %d objects, want %d", s.objects.Len(), n)
		}
	}
}

func (s *stored) result(t *testing.T, id string) []byte {
	t.Helper()
	content, err := s.OpenResult(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPayloadsGoWithTheirJob follows objects from their job to its end.
func TestPayloadsGoWithTheirJob(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	for name, spec := range map[string]jobhost.Spec{
		"uploaded": {PayloadRef: s.upload(t, bigText(200_000))},
		"inline":   {Payload: bigText(200_000)},
	} {
		spec.ID = name
		id := submit(t, s.Host, spec)
		if job := wait(t, s.Host, id); job.State != jobhost.Succeeded {
			t.Fatalf("%s: got %+v", name, job)
		}
		if got := s.result(t, id); !bytes.Equal(got, bigText(200_000)) {
			t.Errorf("%s: the result has %d bytes", name, len(got))
		}
	}
	s.awaitObjects(t, 4)
	for _, id := range []string{"uploaded", "inline"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitObjects(t, 0)

	id := submit(t, s.Host, jobhost.Spec{Payload: bigText(1000)})
	wait(t, s.Host, id)
	if got := s.result(t, id); !bytes.Equal(got, bigText(1000)) || s.objects.Len() != 0 {
		t.Errorf("a small job has a result of %d bytes and %d objects", len(got), s.objects.Len())
	}
}

// TestStepsBorrowOutputs: an output that is in a payload store is passed on by its name, to
// several steps, and goes with the workflow.
func TestStepsBorrowOutputs(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	id := startWorkflow(t, s.Host, jobhost.WorkflowStart{Input: []byte(strings.Repeat("large ", 20_000)), Definition: &jobhost.Workflow{Name: "w", Steps: []jobhost.Step{
		{Name: "a", Worker: "test"},
		{Name: "b", Worker: "test", Needs: []string{"a"}},
		{Name: "c", Worker: "test", Needs: []string{"a"}, Input: "steps.a.output", Output: true},
	}}})
	got := workflowEnded(t, s.Host, id)
	if text := statuses(&got); text != "completed a=completed b=completed c=completed" || got.OutputSize != 120_000 {
		t.Errorf("%s, %d bytes: %+v", text, got.OutputSize, got.Failure)
	}
	s.awaitObjects(t, 3)
	if err := s.DeleteWorkflow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.awaitObjects(t, 0)
}

// TestPayloadsRefused: what comes of a submit that makes no job is removed.
func TestPayloadsRefused(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	id := submit(t, s.Host, jobhost.Spec{ID: "a", Payload: bigText(100_000)})
	wait(t, s.Host, id)
	s.awaitObjects(t, 2)
	receipt, err := s.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "test", Payload: bigText(100_000)})
	if err != nil || !receipt.Deduplicated {
		t.Errorf("the same again: %+v, %v", receipt, err)
	}
	_, err = s.Submit(t.Context(), jobhost.Spec{ID: "a", Worker: "test", Payload: bigText(100_010)})
	if jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("other content: %v", err)
	}
	s.awaitObjects(t, 2)
	_, err = s.Upload(t.Context(), io.LimitReader(payloadtest.NewStream(1), 1<<20+1))
	if jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("an upload over the limit: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the client left")
	_, err = s.Upload(ctx, io.MultiReader(bytes.NewReader(bigText(100_000)), readerFunc(func() { cancel(left) }), bytes.NewReader(bigText(100_000))))
	if !errors.Is(err, left) {
		t.Errorf("an upload that is given up: %v", err)
	}
	if s.objects.Len() != 2 {
		t.Errorf("%d objects", s.objects.Len())
	}
}

// readerFunc calls a function instead of reading.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }

// TestUploadOverMaxPayload: what is uploaded has a limit of its own.
func TestUploadOverMaxPayload(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) { cfg.MaxPayload = 2000 })
	_, err := s.Submit(t.Context(), jobhost.Spec{Worker: "test", Payload: bigText(2010)})
	if jobhost.CodeOf(err) != jobhost.CodeTooLarge {
		t.Errorf("inline: %v", err)
	}
	for _, size := range []int{2010, 100_000} {
		id := submit(t, s.Host, jobhost.Spec{PayloadRef: s.upload(t, bigText(size))})
		if job := wait(t, s.Host, id); job.State != jobhost.Succeeded || len(s.result(t, id)) != size {
			t.Errorf("%d bytes: got %+v", size, job)
		}
	}
}

func message(err error) string {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// TestPayloadGone: an attempt whose payload is gone or damaged fails for good.
func TestPayloadGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(s *stored, key string)
		want   string
	}{
		{"gone", func(s *stored, key string) { _ = s.objects.Delete(context.Background(), []string{key}) }, "gone"},
		{"damaged", func(s *stored, key string) {
			s.objects.Change(key, func(b []byte) []byte { b[99_999] ^= 1; return b })
		}, "damaged"},
		{"cut off", func(s *stored, key string) {
			s.objects.Change(key, func(b []byte) []byte { return b[:50_000] })
		}, "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setupStored(t, func(cfg *host.Config) { cfg.YoungFor = -1 })
			if _, err := s.PauseWorker(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			id := submit(t, s.Host, jobhost.Spec{Payload: bigText(100_000)})
			keys, err := s.objects.List(t.Context(), "", 10)
			if err != nil || len(keys) != 1 {
				t.Fatalf("%v, %v", keys, err)
			}
			c.damage(s, keys[0])
			if _, err := s.ResumeWorker(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			job := wait(t, s.Host, id)
			if job.State != jobhost.Dead || len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailPayload || !strings.Contains(job.Failures[0].Message, c.want) {
				t.Errorf("got %+v", job)
			}
		})
	}
}

// TestInputTooLarge: a guest that wants all of its input in its memory is not
// given more than that holds.
func TestInputTooLarge(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) {
		w := &cfg.Workers[0]
		w.Plugin, w.Entry, w.Limits.MemoryBytes = guests.Outcomes, "echo", 512<<10
	})
	small := submit(t, s.Host, jobhost.Spec{PayloadRef: s.upload(t, bigText(60_000))})
	if job := wait(t, s.Host, small); job.State != jobhost.Succeeded || !bytes.Equal(s.result(t, small), bigText(60_000)) {
		t.Errorf("got %+v", job)
	}
	large := submit(t, s.Host, jobhost.Spec{PayloadRef: s.upload(t, bigText(1_000_000))})
	job := wait(t, s.Host, large)
	if job.State != jobhost.Dead || len(job.Failures) != 1 || job.Failures[0].Code != jobhost.FailInputTooLarge ||
		!strings.Contains(job.Failures[0].Message, "524288") {
		t.Errorf("got %+v", job)
	}
}

// TestLargeOutput: the limit of the output holds wherever that goes.
func TestLargeOutput(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) { cfg.Workers[0].Limits.OutputBytes = 50_000 })
	id := submit(t, s.Host, jobhost.Spec{Payload: bigText(60_000)})
	job := wait(t, s.Host, id)
	if job.State != jobhost.Dead || job.Failures[0].Code != jobhost.FailOutputTooLarge {
		t.Errorf("got %+v", job)
	}
	s.awaitObjects(t, 1) // its payload
}

// TestCancelledOutput: what a cancelled attempt has written is removed.
func TestCancelledOutput(t *testing.T) {
	t.Parallel()
	s := setupStored(t, func(cfg *host.Config) {
		cfg.Workers[0].Plugin = guests.Command
		cfg.Workers[0].Limits.OutputBytes = 1 << 40
	})
	id := submit(t, s.Host, jobhost.Spec{Payload: []byte("big_output\n4000000000")})
	for s.list(t)[0].Busy == 0 {
		<-time.After(time.Millisecond)
	}
	if _, err := s.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if n := s.objects.Len(); n != 0 {
		t.Errorf("%d objects", n)
	}
}

// list is Workers without an error.
func (s *stored) list(t *testing.T) []jobhost.WorkerStatus {
	t.Helper()
	workers, err := s.Workers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return workers
}

// TestUploadsOverRestart: what an uploader was told holds for the next host too.
func TestUploadsOverRestart(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	ref := s.upload(t, bigText(100_000))
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Workers = append([]host.Worker(nil), s.cfg.Workers...)
	s.start(t)
	id := submit(t, s.Host, jobhost.Spec{PayloadRef: ref})
	if job := wait(t, s.Host, id); job.State != jobhost.Succeeded {
		t.Errorf("got %+v", job)
	}
}

// filling is a body during which the disk fills up.
type filling struct {
	r    io.Reader
	fill func()
}

func (f *filling) Read(p []byte) (int, error) {
	n, err := f.r.Read(p[:min(len(p), 10_000)])
	f.fill()
	return n, err
}

// TestUploadFillsDisk: an upload doesn't go on below the space that is to be kept
// free, however much it had when it began.
func TestUploadFillsDisk(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(1 << 30)
	s := setupStored(t, func(c *host.Config) {
		c.MinFree = 1 << 20
		c.FreeSpace = func() (int64, error) { return free.Load(), nil }
	})
	body := &filling{bytes.NewReader(bigText(500_000)), func() {
		free.Store(0)
		for s.Admits() == nil {
			<-time.After(time.Millisecond)
		}
	}}
	if _, err := s.Upload(t.Context(), body); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	s.awaitObjects(t, 0)
}

// An upload is for one job, however small it is. The job has it instead of a copy, and it
// goes with the job.
func TestSmallUploadIsForOneJob(t *testing.T) {
	t.Parallel()
	s := setupStored(t)
	ref := s.upload(t, bigText(500))
	first := jobhost.Spec{ID: "first", Worker: "test", PayloadRef: ref}
	if _, err := s.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), jobhost.Spec{ID: "second", Worker: "test", PayloadRef: ref}); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("a second job with the upload: %v", err)
	}
	for what, again := range map[string]jobhost.Spec{
		"with the upload":  first,
		"with the content": {ID: "first", Worker: "test", Payload: bigText(500)},
	} {
		if receipt, err := s.Submit(t.Context(), again); err != nil || !receipt.Deduplicated {
			t.Errorf("submitted again %s: %+v, %v", what, receipt, err)
		}
	}
	if job := wait(t, s.Host, "first"); job.State != jobhost.Succeeded || !bytes.Equal(s.result(t, "first"), bigText(500)) {
		t.Errorf("the job is %s", job.State)
	}
	if err := s.Delete(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	s.awaitObjects(t, 0)
}
