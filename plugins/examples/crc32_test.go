package examples_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jobhost/jobhost/plugins/internal/guesttest"
)

func TestCRC32(t *testing.T) {
	t.Parallel()
	module := guesttest.Read(t, "crc32/crc32.wasm")
	for _, c := range []struct {
		name  string
		input []byte
	}{
		{"empty", nil},
		{"the check value of the algorithm", []byte("123456789")},
		{"bytes that are no text", []byte("\x00\xff\n\r\n\x1a\x00")},
		{"larger than the buffer", bytes.Repeat([]byte("jobhost "), 20_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := guesttest.Command{Input: c.input}
			run.Run(t, module)
			want := fmt.Sprintf("%08x %d -\n", crc32.ChecksumIEEE(c.input), len(c.input))
			if got := run.Output.String(); got != want || run.Code != 0 {
				t.Errorf("%q instead of %q, code %d", got, want, run.Code)
			}
		})
	}
}

func TestCRC32OfFiles(t *testing.T) {
	t.Parallel()
	run := guesttest.Command{
		Args:  []string{"/data/one", "/data/none", "/data/two"},
		Files: fstest.MapFS{"one": {Data: []byte("123456789")}, "two": {}},
	}
	run.Run(t, guesttest.Read(t, "crc32/crc32.wasm"))
	if got, want := run.Output.String(), "cbf43926 9 /data/one\n00000000 0 /data/two\n"; got != want || run.Code != 1 {
		t.Errorf("%q instead of %q, code %d", got, want, run.Code)
	}
	if got := run.Errors.String(); !strings.HasPrefix(got, "crc32: open /data/none: ") {
		t.Errorf("standard error %q", got)
	}
}
