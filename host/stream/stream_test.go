package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// TestModel compares a pipe without waiters with a slice.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(rt, "size")
		p, buf := stream.NewPipe(size), []byte(nil)
		closed, reason := false, error(nil)
		end := func() error {
			if reason == nil {
				return io.EOF
			}
			return reason
		}
		// read takes n bytes, or fails with err, or waits if n is negative.
		read := func(rt *rapid.T, o op.Op[[]byte], n int, want error) {
			got, ok, err := op.TryPerform(o)
			if ok != (n >= 0) || !errors.Is(err, want) || ok && !bytes.Equal(got, buf[:n]) {
				rt.Fatalf("got %q %v %v, want %d of %q, %v", got, ok, err, n, buf, want)
			}
			buf = buf[max(n, 0):]
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				data := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 1, 5, -1).Draw(rt, "data"))
				n, ok, err := op.TryPerform(p.WriteOp(data))
				fits := len(buf) == 0 || len(buf)+len(data) <= size
				switch {
				case closed && (!ok || err == nil || reason != nil && !errors.Is(err, reason)):
					rt.Fatalf("closed: %v %v", ok, err)
				case !closed && (ok != fits || err != nil || fits && n != len(data)):
					rt.Fatalf("got %d %v %v, fits %v", n, ok, err, fits)
				case !closed && fits:
					buf = append(buf, data...)
				}
			},
			"read": func(rt *rapid.T) {
				most := rapid.IntRange(1, 9).Draw(rt, "most")
				switch {
				case len(buf) > 0:
					read(rt, p.ReadOp(most), min(most, len(buf)), nil)
				case closed:
					read(rt, p.ReadOp(most), 0, end())
				default:
					read(rt, p.ReadOp(most), -1, nil)
				}
			},
			"line": func(rt *rapid.T) {
				i := bytes.IndexByte(buf, '\n')
				switch {
				case i >= 0:
					read(rt, p.LineOp(), i+1, nil)
				case closed && len(buf) > 0 && reason == nil:
					read(rt, p.LineOp(), len(buf), nil)
				case closed:
					read(rt, p.LineOp(), 0, end())
				case len(buf) >= size:
					read(rt, p.LineOp(), 0, stream.ErrTooLong)
				default:
					read(rt, p.LineOp(), -1, nil)
				}
			},
			"exact": func(rt *rapid.T) {
				n := rapid.IntRange(1, 9).Draw(rt, "n")
				switch {
				case n <= len(buf):
					read(rt, p.ExactOp(n), n, nil)
				case closed && reason == nil && len(buf) > 0:
					read(rt, p.ExactOp(n), 0, io.ErrUnexpectedEOF)
				case closed:
					read(rt, p.ExactOp(n), 0, end())
				case n > size:
					read(rt, p.ExactOp(n), 0, stream.ErrTooLong)
				default:
					read(rt, p.ExactOp(n), -1, nil)
				}
			},
			"close": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "really") > 0 {
					rt.Skip("not yet")
				}
				why := rapid.SampledFrom([]error{nil, errBroken}).Draw(rt, "reason")
				if !closed {
					closed, reason = true, why
				}
				_ = p.CloseWithError(why)
			},
			"": func(rt *rapid.T) {
				if p.Len() != len(buf) {
					rt.Fatalf("%d bytes, want %d", p.Len(), len(buf))
				}
			},
		})
	})
}

type result struct {
	data string
	err  error
}

func background[T any](o op.Op[T], text func(T) string) <-chan result {
	out := make(chan result, 1)
	go func() {
		v, err := op.PerformRaw(o)
		out <- result{text(v), err}
	}()
	synctest.Wait()
	return out
}

func asText(data []byte) string { return string(data) }
func asNumber(n int) string     { return fmt.Sprint(n) }

func TestWaiting(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		run  func(t *testing.T, p *stream.Pipe) <-chan result // p has room for 8 bytes
		want result
	}{
		{"a line in parts", func(t *testing.T, p *stream.Pipe) <-chan result {
			out := background(p.LineOp(), asText)
			write(t, p, "ab")
			write(t, p, "cd\ne")
			return out
		}, result{"abcd\n", nil}},
		{"a line whose parts don't fit together", func(t *testing.T, p *stream.Pipe) <-chan result {
			write(t, p, "abcde")
			out := background(p.LineOp(), asText)
			write(t, p, "fghij\n")
			return out
		}, result{"abcdefghij\n", nil}},
		{"a write that waited first", func(t *testing.T, p *stream.Pipe) <-chan result {
			write(t, p, "abcde")
			background(p.WriteOp([]byte("fghij\n")), asNumber)
			return background(p.LineOp(), asText)
		}, result{"abcdefghij\n", nil}},
		{"the second reader, when the first gives up", func(t *testing.T, p *stream.Pipe) <-chan result {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = op.Perform(ctx, p.ExactOp(8)) }()
			synctest.Wait()
			out := background(p.ReadOp(8), asText)
			write(t, p, "abc")
			cancel()
			return out
		}, result{"abc", nil}},
		{"room", func(t *testing.T, p *stream.Pipe) <-chan result {
			write(t, p, "abcde")
			out := background(p.WriteOp([]byte("fghij")), asNumber)
			_, _ = op.PerformRaw(p.ReadOp(3))
			return out
		}, result{"5", nil}},
		{"room, when the pipe is closed", func(t *testing.T, p *stream.Pipe) <-chan result {
			write(t, p, "abcde")
			out := background(p.WriteOp([]byte("fghij")), asNumber)
			_ = p.CloseWithError(errBroken)
			return out
		}, result{"0", errBroken}},
		{"the end", func(_ *testing.T, p *stream.Pipe) <-chan result {
			out := background(p.ReadOp(1), asText)
			_ = p.Close()
			return out
		}, result{"", io.EOF}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := stream.NewPipe(8)
				if got := <-tt.run(t, p); got.data != tt.want.data || !errors.Is(got.err, tt.want.err) {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			})
		})
	}
}

func write(t *testing.T, p *stream.Pipe, text string) {
	t.Helper()
	if n, err := op.Perform(t.Context(), p.WriteOp([]byte(text))); n != len(text) || err != nil {
		t.Fatalf("write: %d %v", n, err)
	}
}

// TestHammer lets writers of lines and readers of lines give up at any time: lines
// whose writing won are read once, whole.
func TestHammer(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 1000
	p := stream.NewPipe(64)
	var mu sync.Mutex // protects open
	open := map[string]int{}
	count := func(line string, n int) {
		mu.Lock()
		defer mu.Unlock()
		open[line] += n
	}
	var writers, readers sync.WaitGroup
	for w := range workers {
		writers.Go(func() {
			for i := range rounds {
				line := fmt.Sprintf("%d-%d%s\n", w, i, strings.Repeat("x", rand.IntN(20)))
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(2) == 0 {
					go cancel()
				}
				if _, err := op.Perform(ctx, p.WriteOp([]byte(line))); err == nil {
					count(line, 1)
				}
				cancel()
			}
		})
		readers.Go(func() {
			for {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(2) == 0 {
					go cancel()
				}
				data, err := op.Perform(ctx, p.LineOp())
				cancel()
				if err == nil {
					count(string(data), -1)
				}
				if errors.Is(err, io.EOF) {
					return
				}
			}
		})
	}
	writers.Wait()
	_ = p.Close()
	readers.Wait()
	for line, n := range open {
		if n != 0 {
			t.Errorf("line %q: %d too many written", line, n)
		}
	}
}

func TestFromTo(t *testing.T) {
	t.Parallel()
	s := scope.New(t.Context(), "test")
	here, there := net.Pipe()
	in, err := stream.From(s, here, 16)
	if err != nil {
		t.Fatal(err)
	}
	out, err := stream.To(s, there, 16)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789", 1000)
	go func() {
		_, _ = io.WriteString(out, text)
		_ = out.Close()
	}()
	if got, err := io.ReadAll(in); string(got) != text || err != nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if _, err := s.Join(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := stream.From(s, here, 16); err == nil {
		t.Error("a scope that has ended takes a stream")
	}
	if _, err := stream.To(s, there, 16); err == nil {
		t.Error("a scope that has ended takes a stream")
	}
}

// TestStreamsEnd: what ends a stream ends its goroutine, which the join waits for.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(s *scope.Scope, in, out *stream.Pipe, gone func())
		want error
	}{
		"cancelled": {func(s *scope.Scope, _, _ *stream.Pipe, _ func()) { s.Cancel(errBroken) }, errBroken},
		"closed":    {func(_ *scope.Scope, in, out *stream.Pipe, _ func()) { _, _ = in.Close(), out.Close() }, io.EOF},
		"peer gone": {func(_ *scope.Scope, _, out *stream.Pipe, gone func()) {
			gone()
			_, _ = out.Write([]byte("x"))
		}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scope.New(t.Context(), "test")
			source, from := net.Pipe()
			target, to := net.Pipe()
			gone := func() { _, _ = from.Close(), to.Close() }
			defer gone()
			in, err := stream.From(s, source, 16)
			if err != nil {
				t.Fatal(err)
			}
			out, err := stream.To(s, target, 16)
			if err != nil {
				t.Fatal(err)
			}
			tt.end(s, in, out, gone)
			if _, err := s.Join(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := op.PerformRaw(in.ReadOp(1)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if _, err := op.PerformRaw(out.WriteOp([]byte("x"))); err == nil {
				t.Error("written after the end")
			}
		})
	}
}
