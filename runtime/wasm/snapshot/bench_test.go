package snapshot

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchImage is a guest's memory after its start: half of it was used.
func benchImage(b *testing.B, size int) *Image {
	content := make([]byte, size)
	for at := 0; at < size/2; at += 64 {
		content[at] = byte(at>>6) | 1
	}
	return testImage(b, content)
}

// BenchmarkReset is a job that writes some pages and the reset after it. Pages
// lie scattered over twice as many, as those of a guest do.
func BenchmarkReset(b *testing.B) {
	for _, dirty := range []int{0, 1, 3, 10, 40, 100, 200, 400, 1000, 2000, 4000, 10000, 16000} {
		for _, method := range methods() {
			size := max(2*dirty*page, 128<<10)
			size += -size & (PageBytes - 1)
			b.Run(fmt.Sprintf("dirty=%d/%v", dirty, method), func(b *testing.B) {
				m := testMemory(b, uint64(size), benchImage(b, size), method)
				places := rand.New(rand.NewPCG(1, 2)).Perm(size / page)[:dirty]
				bytes := m.Bytes()
				b.ReportAllocs()
				for b.Loop() {
					for _, at := range places {
						bytes[at*page+8]++
					}
					if _, err := m.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkResetSize is a reset after three pages were written in memories of
// which all pages have been read.
func BenchmarkResetSize(b *testing.B) {
	for _, mib := range []int{1, 4, 16, 64} {
		for _, method := range methods() {
			b.Run(fmt.Sprintf("%dMiB/%v", mib, method), func(b *testing.B) {
				m := testMemory(b, uint64(mib)<<20, benchImage(b, mib<<20), method)
				bytes := m.Bytes()
				isZero(bytes[:PageBytes])
				var sum byte
				for at := 0; at < len(bytes); at += page {
					sum += bytes[at]
				}
				for b.Loop() {
					for i := range 3 {
						bytes[i*5*page] = sum
					}
					if _, err := m.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkResetParallel is jobs of 40 pages in a memory for each processor.
func BenchmarkResetParallel(b *testing.B) {
	image := benchImage(b, 1<<20)
	b.RunParallel(func(pb *testing.PB) {
		m := testMemory(b, 1<<20, image, bestMethod())
		for pb.Next() {
			for i := range 40 {
				m.Bytes()[3*i*page+8]++
			}
			if _, err := m.Reset(); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkNew makes a memory and closes it; touched writes three pages.
func BenchmarkNew(b *testing.B) {
	image := benchImage(b, 1<<20)
	for _, tc := range []struct {
		name  string
		pages int
	}{{"untouched", 0}, {"touched", 3}} {
		run := func(b *testing.B) {
			m, err := New(64<<20, image)
			if err != nil {
				b.Fatal(err)
			}
			for i := range tc.pages {
				m.Bytes()[i*page] = 1
			}
			if err := m.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run(b)
			}
		})
		b.Run(tc.name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					run(b)
				}
			})
		})
	}
}
