package test

import (
	"os"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// Clients ask for all events that the host remembers and don't read them: what the host holds
// for all of them together is bounded.
func TestStreamsThatNobodyRead(t *testing.T) {
	t.Parallel()
	const most, remembered = 256 << 20, 8192
	for _, c := range []struct {
		name  string
		token bool
	}{{"with the token", true}, {"without it", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.replace("[host]", "[host]\nopen_reads = true")
			s.write("noop.wasm", guests.Noop)
			s.write("manifest.toml", []byte(s.manifest()+"\n[worker.noop]\nplugin = \"noop.wasm\"\n"))
			host := s.start()
			// Each job has at least two events.
			for range remembered / 2 / 512 {
				acks, err := host.SubmitBatch(t.Context(), slices.Repeat([]jobhost.Spec{{Worker: "noop"}}, 512))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := host.Wait(t.Context(), acks[len(acks)-1].Receipt.ID); err != nil {
					t.Fatal(err)
				}
			}
			header := ""
			if c.token {
				header = "Authorization: Bearer " + s.token() + "\r\n"
			}
			before := host.memory("VmRSS")
			readers := 40 // a few more than allowed without the token
			if os.Getenv("JOBHOST_CHAOS") != "" {
				readers = 1000
			}
			for range readers {
				// It has begun when something can be read.
				if _, err := s.ask("/v1/events?after=1", header).Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
			grown := host.memory("VmHWM") - before
			t.Logf("%d idle readers: %d MiB more than the %d MiB before", readers, grown>>20, before>>20)
			if grown > most {
				t.Errorf("the host grew by %d MiB, want at most %d", grown>>20, most>>20)
			}
		})
	}
}
