package wire_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// TestPieces compares results in pieces with what encoding/json makes of the whole.
func TestPieces(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data string }{
		{"empty", ""},
		{"short", `"quoted" <b> & \ text`},
		{"control characters", strings.Repeat("\x01", 40_000)},
		{"runes over the borders of pieces", "a" + strings.Repeat("é", 20_000) + strings.Repeat("🐙", 20_000)},
		{"line separators", strings.Repeat("x\u2028", 9_000)},
		{"bytes", strings.Repeat("\xff\x00", 20_001)},
		{"text with one bad byte at the end", strings.Repeat("a", 30_000) + "\xc3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			task := wire.TaskResult{Task: 3, State: jobhost.Succeeded}
			var got bytes.Buffer
			for piece, err := range task.Pieces([]byte(test.data)) {
				if err != nil {
					t.Fatal(err)
				}
				if len(piece) > 128<<10 {
					t.Errorf("a piece has %d bytes", len(piece))
				}
				got.Write(piece)
			}
			task.Set([]byte(test.data))
			want, err := json.Marshal(task)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got %.200q, want %.200q", got.String(), want)
			}
		})
	}
}
