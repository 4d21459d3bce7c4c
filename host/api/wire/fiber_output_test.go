package wire_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// TestFiberOutputInPieces: the pieces are the JSON of the output as a whole, and none of them is large.
func TestFiberOutputInPieces(t *testing.T) {
	t.Parallel()
	check := func(t rapid.TB, o jobhost.FiberOutput) {
		want, err := json.Marshal(wire.NewFiberOutput(o))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for part := range wire.FiberOutputJSON(o) {
			if len(part) > 100_000 {
				t.Errorf("a piece of %d bytes", len(part))
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got %.200s, want %.200s", got, want)
		}
	}
	now := time.Now()
	for _, text := range []string{"", "a", "é", "\xff", strings.Repeat("\x00", 1<<20), strings.Repeat("€", 20_000), strings.Repeat("a€", 20_000)} {
		check(t, jobhost.FiberOutput{Seq: 7, Time: now, Data: []byte(text)})
		check(t, jobhost.FiberOutput{Seq: 7, Time: now.UTC(), Data: []byte(text + "\xff")})
	}
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(rapid.String().Draw(t, "text"))
		if rapid.Bool().Draw(t, "binary") {
			data = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		}
		times := rapid.IntRange(0, 3000).Draw(t, "times")
		check(t, jobhost.FiberOutput{Seq: rapid.Uint64().Draw(t, "seq"), Time: now, Data: slices.Repeat(data, times)})
	})
}
