package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// TestFiberWatch: what a fiber publishes is shown in lines that no terminal obeys,
// and its end.
func TestFiberWatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		end, want, stderr string
		args              []string
		code              int
	}{
		{"end", "one\n" + printable(hostile) + "\n", "fiber room has completed", []string{"--replay"}, exitOK},
		{"fail", printable(hostile) + "\n", "fiber room has failed: ", []string{"--after", "1"}, exitFailed},
		{"end", `{"seq":1,"time":"`, "", []string{"--replay", "-o", "json"}, exitOK},
	} {
		server := newServer(t)
		if _, err := server.StartFiber(t.Context(), jobhost.FiberSpec{ID: "room", Worker: "test", Entry: "fiber"}); err != nil {
			t.Fatal(err)
		}
		say := func(text string) {
			if err := server.SendFiber(t.Context(), "room", []byte(text), true); err != nil {
				t.Error(err)
			}
		}
		say("one")
		say(hostile)
		until(t, server, func(f *jobhost.Fiber) bool { return f.Emitted == 2 })
		c := newConsole(t, server)
		var group sync.WaitGroup
		group.Go(func() {
			if code := c.run(t, append([]string{"fiber", "watch", "room"}, test.args...)...); code != test.code {
				t.Errorf("%v: exit code %d: %s", test.args, code, c.errOut.String())
			}
		})
		until(t, server, func(f *jobhost.Fiber) bool { return f.Subscribers > 0 })
		say(test.end)
		group.Wait()
		if got := c.out.String(); !strings.HasPrefix(got, test.want) || !strings.Contains(c.errOut.String(), test.stderr) {
			t.Errorf("%v: got %q and %q", test.args, got, c.errOut.String())
		}
	}
}

// until waits until the fiber room is as wanted.
func until(t *testing.T, server jobhost.FiberRunner, wanted func(*jobhost.Fiber) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		f, err := server.Fiber(t.Context(), "room")
		if err != nil {
			t.Fatal(err)
		}
		if wanted(&f) {
			return
		}
	}
}
