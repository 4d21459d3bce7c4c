package host_test

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

// bounded is a payload store whose space comes to an end.
type bounded struct {
	*payloadtest.Memory
	free atomic.Int64
}

// Free implements [payload.Spacious].
func (b *bounded) Free() (int64, error) { return b.free.Load(), nil }

// TestPayloadDiskNearlyFull: while the disk of a payload store is nearly full no large
// payloads are taken, also of uploads under way, the host says so, and small jobs go on.
func TestPayloadDiskNearlyFull(t *testing.T) {
	t.Parallel()
	s := &stored{objects: payloadtest.NewMemory(), cfg: config(t)}
	disk := &bounded{Memory: s.objects}
	disk.free.Store(2000)
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "disk", Store: disk}}})
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Payloads, s.cfg.PayloadThreshold, s.cfg.MinFree = set, 1000, 1000
	s.Host, s.stop = run(t, s.cfg)
	upload := func(r io.Reader) error { _, err := s.Upload(t.Context(), r); return err }
	refused := func(err error) bool {
		return jobhost.CodeOf(err) == jobhost.CodeUnavailable && strings.Contains(err.Error(), "payload store disk is nearly full")
	}
	if err := upload(strings.NewReader("x")); err != nil || s.Impaired() != nil {
		t.Fatalf("%v, %v", err, s.Impaired())
	}
	under := upload(io.MultiReader(readerFunc(func() {
		disk.free.Store(999)
		for len(s.Impaired()) == 0 {
			<-time.After(time.Millisecond)
		}
	}), strings.NewReader("x")))
	_, err = s.Submit(t.Context(), jobhost.Spec{Worker: "test", Payload: bigText(2000)})
	if !refused(under) || !refused(err) || !refused(upload(bytes.NewReader(bigText(2000)))) {
		t.Errorf("an upload under way: %v, a large job: %v", under, err)
	}
	if err := s.Admits(); err != nil || !strings.Contains(strings.Join(s.Impaired(), "\n"), "nearly full") {
		t.Errorf("%v, %q", err, s.Impaired())
	}
	submit(t, s.Host, jobhost.Spec{Payload: []byte("x")})
	disk.free.Store(1100)
	deadline := time.After(10 * time.Second)
	for upload(strings.NewReader("x")) != nil {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("large payloads are not taken again")
		}
	}
}
