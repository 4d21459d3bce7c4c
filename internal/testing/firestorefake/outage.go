package firestorefake

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Outage makes a server stop answering for a time. The zero value answers.
type Outage struct {
	mu      sync.Mutex // protects the fields below
	away    bool
	next    int
	streams map[int]context.CancelFunc
}

var errAway = status.Error(codes.Unavailable, "the server is away")

// Options returns the options of the server.
func (o *Outage) Options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.UnaryInterceptor(o.call), grpc.StreamInterceptor(o.stream)}
}

// Begin ends all streams, and rejects all calls until End.
func (o *Outage) Begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = true
	for _, cancel := range o.streams {
		cancel()
	}
}

// End ends the outage.
func (o *Outage) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = false
}

func (o *Outage) call(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	o.mu.Lock()
	away := o.away
	o.mu.Unlock()
	if away {
		return nil, errAway
	}
	return handle(ctx, req)
}

// cut is a stream that ends with an outage.
type cut struct {
	grpc.ServerStream
	ctx context.Context
}

func (c cut) Context() context.Context { return c.ctx }

func (o *Outage) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, leave, ok := o.enter(stream.Context())
	if !ok {
		return errAway
	}
	defer leave()
	if err := handle(srv, cut{stream, ctx}); ctx.Err() == nil || stream.Context().Err() != nil {
		return err
	}
	return errAway
}

// enter returns the context of a stream; ok = false: it is rejected.
func (o *Outage) enter(ctx context.Context) (_ context.Context, leave func(), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away {
		return nil, nil, false
	}
	if o.streams == nil {
		o.streams = map[int]context.CancelFunc{}
	}
	o.next++
	n := o.next
	ctx, cancel := context.WithCancel(ctx)
	o.streams[n] = cancel
	return ctx, func() {
		cancel()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.streams, n)
	}, true
}
