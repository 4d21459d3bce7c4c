package manifest

import (
	"math"
	"testing"

	"github.com/jobhost/jobhost/internal/text"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		want  Size
		shown string // empty = text
	}{
		{"0B", 0, ""},
		{"1B", 1, ""},
		{"1023B", 1023, ""},
		{"64KiB", 64 << 10, ""},
		{"1024KiB", 1 << 20, "1MiB"},
		{"1MiB", 1 << 20, ""},
		{"3GiB", 3 << 30, ""},
		{"2TiB", 2 << 40, ""},
		{"1kB", 1000, ""},
		{"1KB", 1000, "1kB"},
		{"5MB", 5e6, ""},
		{"1GB", 1e9, ""},
		{"1TB", 1e12, ""},
		{"1024MB", 1024e6, ""},
		{"007B", 7, "7B"},
		{"9223372036854775807B", math.MaxInt64, ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSize(tt.text)
			if err != nil || got != tt.want {
				t.Fatalf("got %d, %v, want %d", got, err, tt.want)
			}
			shown := tt.shown
			if shown == "" {
				shown = tt.text
			}
			if got.String() != shown {
				t.Errorf("shown as %s, want %s", got, shown)
			}
			if again, err := ParseSize(got.String()); again != got {
				t.Errorf("%s parses as %d, %v", got, again, err)
			}
		})
	}
}

func TestParseSizeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "5", "B", "MiB", "-1MiB", "+1MiB", "1.5GiB", "1 MiB", "1e3B", "0x10B", "1_000B", "64mb", "64Mb", "64MIB", "64 ", " 64B",
		"99999999999999999999GiB", "9223372036854775808B", "9007199254740992TiB", "٣MiB", "1MiB\x00", "NaN", "infB",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseSize(text); err == nil {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := append(names(workerFields()), "retry", "config", "secrets", "max_attempts")
	tests := []struct{ word, want string }{
		{"timeot", "timeout"},
		{"tiemout", "timeout"},
		{"Timeout", "timeout"},
		{"timeout_", "timeout"},
		{"pool-size", "pool_size"},
		{"poolsize", "pool_size"},
		{"quecapacity", "queue_capacity"},
		{"plugni", "plugin"},
		{"secret", "secrets"},
		{"abl", "abi"},
		{"attempts", "max_attempts"},
		{"capacity", "queue_capacity"},
		{"memory_limit", "memory"},
		{"max_memory", "memory"},
		{"log_line_limit", "log_line"},
		{"x", ""},
		{"colour", ""},
		{"priority", ""},
		{"", ""},
	}
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			t.Parallel()
			if got := text.Nearest(tt.word, known); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
