package test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/guests"
)

// Clients follow a fiber with large outputs and don't read them: what the host makes of these for all
// of them together is bounded, and one who reads is sent all.
func TestLargeOutputsThatNobodyReads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		token   bool
		readers int
	}{{"with the token", true, 64}, {"without it", false, 40}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, host := streaming(t, "fiber.wasm", guests.Fiber)
			if _, err := host.StartFiber(t.Context(), jobhost.FiberSpec{ID: "f", Worker: "guest"}); err != nil {
				t.Fatal(err)
			}
			if err := host.SendFiber(t.Context(), "f", []byte("large"), true); err != nil {
				t.Fatal(err)
			}
			read := func() {
				for o, err := range host.WatchFiber(t.Context(), jobhost.FiberQuery{ID: "f", Replay: true}) {
					if err != nil || len(o.Data) != 1<<20 {
						t.Fatalf("an output of %d bytes, %v", len(o.Data), err)
					}
					break
				}
			}
			read() // it is there
			check := s.neglect(host, "/v1/fibers/f/watch?replay=true", c.token, c.readers)
			read()
			check()
		})
	}
}

// The same for the states of a large job, which a reader begins with.
func TestLargeReplaysThatNobodyReads(t *testing.T) {
	t.Parallel()
	const tasks = 5000
	s, host := streaming(t, "noop.wasm", guests.Noop)
	var group sync.WaitGroup
	for first := range 8 {
		group.Go(func() {
			for task := first; task < tasks; task += 8 {
				state := jobhost.TaskState{JobID: "j", TaskID: task, Tag: "a", Status: 1, Message: strings.Repeat("m", 200)}
				if _, err := host.SetState(t.Context(), "", state, tasks); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	check := s.neglect(host, "/v1/states/j/watch", true, 120)
	n := 0
	for e, err := range host.WatchStates(t.Context(), jobhost.StateQuery{Job: "j"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Sentinel {
			break
		}
		n++
	}
	if n != tasks {
		t.Errorf("%d states of %d", n, tasks)
	}
	check()
}

// streaming starts a host with one guest, which may be read without the token.
func streaming(t *testing.T, file string, guest []byte) (*site, *process) {
	t.Helper()
	s := newSite(t)
	s.replace("[host]", "[host]\nopen_reads = true")
	s.write(file, guest)
	s.write("manifest.toml", []byte(s.manifest()+"\n[worker.guest]\nplugin = \""+file+"\"\n"))
	return s, s.start()
}

// neglect has clients ask for a stream that they don't read. What it returns waits until all have an
// answer, and bounds what they have cost.
func (s *site) neglect(host *process, path string, token bool, readers int) (check func()) {
	s.t.Helper()
	const most = 160 << 20
	header := ""
	if token {
		header = "Authorization: Bearer " + s.token() + "\r\n"
	}
	if os.Getenv("JOBHOST_CHAOS") != "" {
		readers = 1000
	}
	before := host.memory("VmRSS")
	var answered sync.WaitGroup
	for range readers {
		conn := s.ask(path, header)
		answered.Go(func() { _, _ = conn.Read(make([]byte, 1)) })
	}
	return func() {
		s.t.Helper()
		answered.Wait()
		grown := host.memory("VmHWM") - before
		s.t.Logf("%d idle readers: %d MiB more than the %d MiB before", readers, grown>>20, before>>20)
		if grown > most {
			s.t.Errorf("the host grew by %d MiB, want at most %d", grown>>20, most>>20)
		}
	}
}
