package firestorestate_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/internal/testing/firestorefake"
)

// BenchmarkSet writes states on the fake, one after the other and at once: what the
// driver takes, without a network and Firestore's own time.
func BenchmarkSet(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		src, _ := follow(b, open(b, at(serve(b, firestorefake.New()))), 1)
		for b.Loop() {
			set(b, src, of("tag", 1))
		}
	})
	b.Run("many", func(b *testing.B) {
		src, _ := follow(b, open(b, at(serve(b, firestorefake.New()))), 1)
		var writers atomic.Int32
		b.SetParallelism(16)
		b.RunParallel(func(p *testing.PB) {
			tag := fmt.Sprint("tag-", writers.Add(1))
			for p.Next() {
				set(b, src, of(tag, 1))
			}
		})
	})
}
