package hostcall_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	const most = 3<<20 + 5
	random := rand.NewChaCha8([32]byte{})
	from, to, want := make([]byte, most), make([]byte, most), make([]byte, most)
	_, _ = random.Read(from)
	for _, size := range []struct{ to, from int }{
		{0, 0}, {0, 9}, {9, 0}, {5, 9}, {9, 5}, {1 << 20, 1 << 20}, {1<<20 + 1, most}, {most, 1<<20 + 1}, {2 << 20, 2 << 20}, {most, most},
	} {
		clear(to)
		clear(want)
		n := hostcall.Copy(to[:size.to], from[:size.from])
		if m := copy(want[:size.to], from[:size.from]); n != m || !bytes.Equal(to, want) {
			t.Errorf("%d bytes to %d: %d copied instead of %d", size.from, size.to, n, m)
		}
	}
}
