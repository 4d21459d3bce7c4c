package hostcall_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/runtime/runtimetest"
)

var (
	errSlow    = &jobhost.Error{Code: jobhost.CodeExhausted, Message: "the reader was too slow"}
	errDeleted = &jobhost.Error{Code: jobhost.CodeNotFound, Message: "the states were deleted"}
)

// receive returns the handle of the attempt's inbox.
func receive(t *testing.T, at *hostcall.Attempt) int32 {
	t.Helper()
	h, e := at.Receive()
	wantErrno(t, "receive", e, hostcall.OK)
	return h
}

// read returns the next part of a message, up to room bytes, or the errno.
func read(t *testing.T, at *hostcall.Attempt, h int32, room int) string {
	t.Helper()
	buf := make([]byte, room)
	n, e := at.Read(t.Context(), h, buf)
	if e != hostcall.OK {
		return fmt.Sprint(e)
	}
	if room == 0 {
		return fmt.Sprint("size ", n)
	}
	return string(buf[:n])
}

func TestMessagesInPieces(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		h := receive(t, at)
		for _, m := range []string{"hello", "", "next", ""} {
			b.Sent.Send(m)
		}
		b.Sent.End(jobhost.ErrFiberEnded)
		for i, step := range []struct {
			room int
			want string
		}{
			{0, "size 5"},
			{0, "size 5"}, // asking for the size consumes nothing
			{2, "he"},
			{0, "size 3"},
			{3, "llo"},
			{0, "size 0"}, // an empty message
			{0, "size 0"},
			{9, ""},
			{9, "next"},
			{1, ""},
			{9, "-7"},
			{0, "-7"}, // it stays so
		} {
			if got := read(t, at, h, step.room); got != step.want {
				t.Fatalf("step %d: %q, want %q", i, got, step.want)
			}
			if n, e := at.Wait(t.Context(), []int32{h}, 0); n != 0 || e != hostcall.OK {
				t.Fatalf("step %d: it isn't ready any more: %d, errno %d", i, n, e)
			}
		}
	})
}

func TestMessagesToCome(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		h := receive(t, at)
		_, e := at.Wait(t.Context(), []int32{h}, 0)
		wantErrno(t, "a look at nothing", e, hostcall.ErrNotFound)
		began := time.Now()
		time.AfterFunc(time.Second, func() { b.Sent.Send("one") })
		if got := read(t, at, h, 0); got != "size 3" || time.Since(began) != time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		if got := read(t, at, h, 9); got != "one" {
			t.Errorf("%q", got)
		}
		_, e = at.Wait(t.Context(), []int32{h}, 1000)
		wantErrno(t, "a second", e, hostcall.ErrNotFound)
		time.AfterFunc(time.Second, func() { b.Sent.End(jobhost.ErrFiberEnded) })
		if got := read(t, at, h, 9); got != "-7" || time.Since(began) != 3*time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

// TestEnds: after the last message a guest learns whether it was too slow, or
// this was all.
func TestEnds(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		for i, tt := range []struct {
			reason error
			want   string
		}{{errSlow, "-4"}, {fmt.Errorf("watch: %w", errSlow), "-4"}, {errDeleted, "-7"}, {jobhost.ErrFiberEnded, "-7"}} {
			h, e := at.WatchState(t.Context(), -1, "")
			wantErrno(t, "watch", e, hostcall.OK)
			b.Watched(i).End(tt.reason)
			if got := read(t, at, h, 100); !strings.Contains(got, `"sentinel":true`) {
				t.Errorf("%v: the last message is %q", tt.reason, got)
			}
			if got := read(t, at, h, 100); got != tt.want {
				t.Errorf("%v: %s, want %s", tt.reason, got, tt.want)
			}
		}
	})
}

func TestReceiveIsOneHandle(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		h := receive(t, at)
		if again := receive(t, at); again != h {
			t.Errorf("the handles are %d and %d", h, again)
		}
		wantErrno(t, "drop", at.Drop(h), hostcall.OK)
		if !b.Sent.Dropped() {
			t.Error("the stream was not dropped")
		}
		if got := read(t, at, h, 1); got != "-5" {
			t.Errorf("a dropped one is answered with %s", got)
		}
		if again := receive(t, at); again == h {
			t.Error("a number was used again")
		}
		b.Sent = nil
		at.Release()
		_, e := at.Receive()
		wantErrno(t, "receive in a job", e, hostcall.ErrDenied)
	})
}

// TestStreamsAreBounded: to 64, including a fiber's inbox.
func TestStreamsAreBounded(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		var last int32
		for i := range 64 {
			h, e := at.WatchState(t.Context(), -1, "a")
			wantErrno(t, fmt.Sprint("watch ", i), e, hostcall.OK)
			last = h
		}
		_, e := at.WatchState(t.Context(), -1, "a")
		wantErrno(t, "one watch more", e, hostcall.ErrLimit)
		_, e = at.Receive()
		wantErrno(t, "receive besides", e, hostcall.ErrLimit)
		wantErrno(t, "drop", at.Drop(last), hostcall.OK)
		if !b.Watched(63).Dropped() || b.Watched(62).Dropped() {
			t.Error("another one was dropped")
		}
		receive(t, at)
		_, e = at.WatchState(t.Context(), -1, "a")
		wantErrno(t, "one watch more", e, hostcall.ErrLimit)
		at.Release()
		for i := range 64 {
			if !b.Watched(i).Dropped() {
				t.Errorf("watch %d is left open", i)
			}
		}
		if !b.Sent.Dropped() {
			t.Error("what the fiber is sent is left open")
		}
	})
}

// TestMixedWait: a watch, messages, a timer and a request in one wait.
func TestMixedWait(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		answer := make(chan struct{})
		b.Respond = func(context.Context, *hostcall.HTTPRequest) (*hostcall.HTTPResponse, error) {
			<-answer
			return &hostcall.HTTPResponse{Status: 200}, nil
		}
		request := send(t, at, "http://a")
		watch, e := at.WatchState(t.Context(), -1, "a")
		wantErrno(t, "watch", e, hostcall.OK)
		timer, e := at.Timer(10_000)
		wantErrno(t, "timer", e, hostcall.OK)
		all := []int32{receive(t, at), request, timer, watch}
		time.AfterFunc(time.Second, func() { b.Sent.Send("1") })
		time.AfterFunc(2*time.Second, func() { b.Watched(0).Send("2") })
		time.AfterFunc(3*time.Second, func() { close(answer) })
		began := time.Now()
		for i, want := range []struct {
			index int32
			after time.Duration
			text  string
		}{{3, 0, `{"replay":true`}, {0, time.Second, "1"}, {3, 2 * time.Second, "2"}, {1, 3 * time.Second, "200"}, {2, 10 * time.Second, ""}} {
			n, e := at.Wait(t.Context(), all, hostcall.NoTimeout)
			if n != want.index || e != hostcall.OK || time.Since(began) != want.after {
				t.Fatalf("%d: index %d, errno %d after %v", i, n, e, time.Since(began))
			}
			if got := read(t, at, all[n], 200); !strings.HasPrefix(got, want.text) {
				t.Errorf("%d: %q", i, got)
			}
			if n == 1 { // it would stay ready
				at.Drop(all[1])
				all[1], _ = at.Timer(3_600_000)
			}
		}
	})
}

// TestCancelBetweenMessages: a guest that always has more to read is notified
// of a cancel, once, and not within a message.
func TestCancelBetweenMessages(t *testing.T) {
	onBoard(t, func(t *testing.T, at *hostcall.Attempt, b *runtimetest.Board) {
		h := receive(t, at)
		for range 3 {
			b.Sent.Send("ab")
		}
		first := read(t, at, h, 1)
		at.Cancel()
		if got := []string{first, read(t, at, h, 1), read(t, at, h, 1), read(t, at, h, 9), read(t, at, h, 9)}; strings.Join(got, " ") != "a b -3 ab ab" {
			t.Errorf("%q", got)
		}
		began := time.Now()
		if got := read(t, at, h, 9); got != "-3" || time.Since(began) != time.Minute {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
	t.Run("while it waits", func(t *testing.T) {
		onBoard(t, func(t *testing.T, at *hostcall.Attempt, _ *runtimetest.Board) {
			h := receive(t, at)
			time.AfterFunc(time.Second, at.Cancel)
			began := time.Now()
			if got := read(t, at, h, 0); got != "-3" || time.Since(began) != time.Second {
				t.Errorf("%s after %v", got, time.Since(began))
			}
		})
	})
}
