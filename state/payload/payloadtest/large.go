package payloadtest

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime/metrics"
	"testing"

	"github.com/jobhost/jobhost/state/payload"
)

// Stream is bytes without an end that don't compress; they are the same for the
// same seed, however they are read.
type Stream struct {
	source *rand.PCG
	rest   []byte // of the last number
}

// NewStream returns the stream of a seed.
func NewStream(seed uint64) *Stream { return &Stream{source: rand.NewPCG(seed, seed)} }

// Read implements [io.Reader]. It fills p.
func (s *Stream) Read(p []byte) (int, error) {
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	for ; n+8 <= len(p); n += 8 {
		binary.LittleEndian.PutUint64(p[n:], s.source.Uint64())
	}
	if n < len(p) {
		s.rest = binary.LittleEndian.AppendUint64(nil, s.source.Uint64())
		copied := copy(p[n:], s.rest)
		s.rest = s.rest[copied:]
		n += copied
	}
	return n, nil
}

// largeGrowth is by how much the heap may grow while a large stream passes.
const largeGrowth = 48 << 20

// testLarge lets a stream pass that is larger than what may be in memory.
func testLarge(t *testing.T, h Harness) {
	if h.InMemory {
		t.Skip("the store is in memory")
	}
	s := h.Open(t)
	for _, cfg := range []payload.Config{{}, {Compress: true, Keys: []payload.Key{key("k1", 1)}}} {
		t.Run(nameOf(cfg), func(t *testing.T) {
			set := newSet(t, s, cfg)
			m := &meter{first: heap()}
			digest := sha256.New()
			source := io.TeeReader(io.LimitReader(NewStream(7), largeBytes), digest)
			ref, err := set.Put(t.Context(), io.TeeReader(source, m), largeBytes)
			if err != nil {
				t.Fatal(err)
			}
			if ref.Size != largeBytes || ref.Digest != [32]byte(digest.Sum(nil)) {
				t.Fatalf("the reference is of %d bytes", ref.Size)
			}
			r, err := set.Open(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if n, err := io.Copy(m, r); n != largeBytes || err != nil {
				t.Fatalf("got %d bytes, %v", n, err)
			}
			t.Logf("%d MB passed, the heap grew by up to %d MB", largeBytes>>20, m.most>>20)
			if m.most > largeGrowth {
				t.Errorf("the heap grew by %d MB while %d MB passed", m.most>>20, largeBytes>>20)
			}
			if err := set.Delete(t.Context(), []payload.Ref{ref}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// meter watches the heap while bytes pass it.
type meter struct {
	first, most int64
	passed      int64
}

// Write implements [io.Writer].
func (m *meter) Write(p []byte) (int, error) {
	const step = 4 << 20
	if m.passed/step != (m.passed+int64(len(p)))/step {
		m.most = max(m.most, heap()-m.first)
	}
	m.passed += int64(len(p))
	return len(p), nil
}

// heap returns the bytes of all objects in the heap, dead ones too.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
