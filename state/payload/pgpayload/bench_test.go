package pgpayload_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/testing/postgres"
	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/pgpayload"
)

// benchStore returns a store on a server that syncs what it acknowledges.
func benchStore(b *testing.B) *pgpayload.Store {
	server := postgres.Start(b, "fsync=on", "full_page_writes=on")
	return pgpayload.New(open(b, server.URL(), "bench"))
}

var benchSizes = []int{1 << 20, 64 << 20}

func BenchmarkWrite(b *testing.B) {
	s := benchStore(b)
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			data := content(1, size)
			b.SetBytes(int64(size))
			var keys []string
			for b.Loop() {
				key := payload.NewKey(time.Now())
				if err := write(b.Context(), s, key, data); err != nil {
					b.Fatal(err)
				}
				keys = append(keys, key)
			}
			b.StopTimer()
			if err := s.Delete(b.Context(), keys); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s := benchStore(b)
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			key := payload.NewKey(time.Now())
			if err := write(b.Context(), s, key, content(1, size)); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				r, err := s.Open(b.Context(), key)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, r); n != int64(size) || err != nil {
					b.Fatal(n, err)
				}
				_ = r.Close()
			}
		})
	}
}
