package firestorestate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/firestorefake"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/firestorestate"
)

// TestReconnect cuts the line of a listener again and again while another process
// writes: nothing is missing in the end, and nothing was told twice.
func TestReconnect(t *testing.T) {
	t.Parallel()
	address := serve(t, firestorefake.New())
	p := newProxy(t, address)
	var reconnects atomic.Int32
	log := newLines()
	opts := at(p.address())
	opts.Logger, opts.Observer.Reconnected = log.logger(), func() { reconnects.Add(1) }
	_, f := follow(t, open(t, opts), 1)
	writer, _ := follow(t, open(t, at(address)), 1)
	const cuts, tags = 5, 3
	for i := range cuts {
		p.cut()
		for n := range 2 * tags {
			set(t, writer, of(fmt.Sprint("tag-", n%tags), int32(i)))
		}
		log.until(t, "🟡", i+1)
		want := int64(2 * (i + 1))
		f.until(t, "what was written while the line was cut", func() bool {
			return f.version("tag-0") == want && f.version("tag-1") == want && f.version("tag-2") == want
		})
	}
	f.wantRising(t)
	if f.reason() != nil || reconnects.Load() < cuts || log.count("🔴") > 0 {
		t.Errorf("end %v, %d reconnects, %d errors in the log", f.reason(), reconnects.Load(), log.count("🔴"))
	}
}

// TestGiveUp refuses all connections: after five attempts the feeds end with the
// error, and the job can be opened again when the server is back.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, firestorefake.New()))
	log := newLines()
	opts := at(p.address())
	opts.Logger, opts.RetryFor = log.logger(), 2*time.Second
	s := open(t, opts)
	src, f := follow(t, s, 1)
	set(t, src, of("tag", 1))
	p.refuseAll(true)
	f.until(t, "the end", func() bool { return f.reason() != nil })
	if jobhost.CodeOf(f.reason()) != jobhost.CodeUnavailable {
		t.Errorf("the feed ended with %v", f.reason())
	}
	if warnings, errs := log.count("🟡 lost"), log.count("🔴 gave up"); warnings != 5 || errs != 1 {
		t.Errorf("%d warnings and %d errors in the log, want 5 and 1", warnings, errs)
	}
	if _, err := src.Set(t.Context(), of("tag", 2)); !errors.Is(err, f.reason()) {
		t.Errorf("set after the end: %v", err)
	}
	if _, err := s.Open(t.Context(), job, 1, newFeed()); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("open without a server: %v", err)
	}
	p.refuseAll(false)
	again, f := follow(t, s, 1)
	if got := set(t, again, of("tag", 2)); got.Version != 2 || f.version("tag") != 2 {
		t.Errorf("after it: %+v", got)
	}
}

// TestStalled lets nothing pass: calls end with their context, and all goes on
// afterwards.
func TestStalled(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, firestorefake.New()))
	opts := at(p.address())
	opts.CallTimeout = 100 * time.Millisecond
	s := open(t, opts)
	src, f := follow(t, s, 1)
	p.stall(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	st := of("tag", 1)
	st.EventID = "e1"
	if _, err := src.Set(ctx, st); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("set: %v", err)
	}
	opening, cancelOpening := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancelOpening(gone)
	if _, err := s.Open(opening, job, 1, newFeed()); !errors.Is(err, gone) {
		t.Errorf("open: %v", err)
	}
	p.stall(false)
	if got := set(t, src, st); got.Version != 1 || f.version("tag") != 1 {
		t.Errorf("sent again: %+v", got)
	}
	f.wantRising(t)
}

// TestWritesThroughCuts writes over a line that is slow and breaks all the time.
// Each write is made once.
func TestWritesThroughCuts(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	p := newProxy(t, serve(t, fake))
	opts := at(p.address())
	opts.Backoff.Attempts = 1000
	src, f := follow(t, open(t, opts), 1)
	p.slow(time.Millisecond)
	const writers, writes = 3, 15
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range writes {
				p.cutAfter(2 + (w*writes+i)%13)
				got, err := src.Set(t.Context(), of(fmt.Sprint("tag-", w), int32(i)))
				if err != nil || got.Version != int64(i+1) {
					t.Errorf("write %d: version %d, %v", i+1, got.Version, err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.wantRising(t)
	if made, _ := fake.Commits(); made != writers*writes {
		t.Errorf("%d commits, want %d", made, writers*writes)
	}
}

// TestLostAnswer makes a commit and loses its answer: the second try finds it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	var lose atomic.Bool
	src, f := follow(t, open(t, at(serve(t, fake, grpc.UnaryInterceptor(
		func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			resp, err := handle(ctx, req)
			if strings.HasSuffix(info.FullMethod, "/Commit") && lose.CompareAndSwap(true, false) {
				return nil, status.Error(codes.Unavailable, "the answer is lost")
			}
			return resp, err
		})))), 1)
	for i := range 3 {
		lose.Store(true)
		if got := set(t, src, of("tag", int32(i))); got.Version != int64(i+1) || got.EventID == "" {
			t.Errorf("got %+v", got)
		}
	}
	f.wantRising(t)
	if made, _ := fake.Commits(); made != 3 {
		t.Errorf("%d commits, want 3", made)
	}
}

// TestWithoutListener writes while the listener is refused, and while it is told
// nothing: the feed is handed what was written all the same.
func TestWithoutListener(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		block func(g *gate, p *proxy)
	}{
		{"refused", func(g *gate, _ *proxy) { g.refuse.Store(true) }},
		{"silent", func(g *gate, _ *proxy) { g.hold() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &gate{open: make(chan struct{})}
			close(g.open)
			p := newProxy(t, serve(t, firestorefake.New(), grpc.StreamInterceptor(g.intercept)))
			opts := at(p.address())
			opts.FeedWait, opts.Backoff.Attempts = 20*time.Millisecond, 1000
			log := newLines()
			opts.Logger = log.logger()
			src, f := follow(t, open(t, opts), 1)
			c.block(g, p)
			if g.refuse.Load() {
				p.cut()
				log.until(t, "🟡", 1)
			}
			for i := range 3 {
				if got := set(t, src, of("tag", int32(i))); f.version("tag") != got.Version || got.Timestamp.IsZero() {
					t.Errorf("the feed has version %d after %+v", f.version("tag"), got)
				}
			}
			g.release()
			f.until(t, "the listener to be back", func() bool { return f.reason() == nil })
			set(t, src, of("tag", 9))
			if f.version("tag") != 4 || f.reason() != nil {
				t.Errorf("in the end: version %d, %v", f.version("tag"), f.reason())
			}
		})
	}
}

// gate refuses or holds back what is told to listeners.
type gate struct {
	refuse atomic.Bool
	mu     sync.Mutex // protects open
	open   chan struct{}
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) release() {
	g.refuse.Store(false)
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if !strings.HasSuffix(info.FullMethod, "/Listen") {
		return handle(srv, stream)
	}
	if g.refuse.Load() {
		return status.Error(codes.Unavailable, "no listeners today")
	}
	return handle(srv, gated{stream, g})
}

type gated struct {
	grpc.ServerStream
	gate *gate
}

// SendMsg implements [grpc.ServerStream].
func (g gated) SendMsg(m any) error {
	g.gate.mu.Lock()
	open := g.gate.open
	g.gate.mu.Unlock()
	select {
	case <-open:
		return g.ServerStream.SendMsg(m)
	case <-g.Context().Done():
		return g.Context().Err()
	}
}

// TestSilentServer is never told what there is.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	address := serve(t, firestorefake.New(), grpc.StreamInterceptor(g.intercept))
	opts := at(address)
	opts.ListTimeout = 20 * time.Millisecond
	s := open(t, opts)
	_, err := s.Open(t.Context(), job, 1, newFeed())
	if jobhost.CodeOf(err) != jobhost.CodeUnavailable || !strings.Contains(err.Error(), "in time") {
		t.Errorf("open: %v", err)
	}
	g.release()
	follow(t, open(t, at(address)), 1)
}

// TestCloseWhileLost closes a store whose listener waits to listen anew.
func TestCloseWhileLost(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, firestorefake.New()))
	log := newLines()
	opts := at(p.address())
	opts.Logger, opts.Backoff = log.logger(), firestorestate.Backoff{First: time.Hour}
	s := open(t, opts)
	_, f := follow(t, s, 1)
	p.refuseAll(true)
	log.until(t, "🟡", 1)
	if err := s.Close(); err != nil || !errors.Is(f.reason(), state.ErrClosed) {
		t.Errorf("close: %v, the feed: %v", err, f.reason())
	}
}
