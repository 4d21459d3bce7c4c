package firestorestate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	firestore "cloud.google.com/go/firestore/apiv1"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// dialer returns a function that makes clients, each with connections of its own.
func (o Options) dialer(emulator string) func(context.Context) (*firestore.Client, error) {
	opts := []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			// Quicker than listeners and writes, which would only hear again what was wrong before.
			Backoff:           backoff.Config{BaseDelay: o.Backoff.First / 5, Multiplier: 1.6, Jitter: 0.2, MaxDelay: min(o.Backoff.Max, maxDialPause)},
			MinConnectTimeout: 20 * time.Second,
		})),
		// A listener of a job at rest hears nothing, and so not that the line is dead.
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second})),
	}
	if emulator != "" {
		opts = append(opts,
			option.WithEndpoint(emulator), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
			option.WithGRPCDialOption(grpc.WithPerRPCCredentials(owner{})),
		)
	}
	opts = append(opts, o.Client...)
	return func(ctx context.Context) (*firestore.Client, error) {
		c, err := firestore.NewClient(ctx, opts...)
		if err != nil {
			return nil, err
		}
		*c.CallOptions = firestore.CallOptions{} // what is tried again is a transaction, not a call of it
		return c, nil
	}
}

// maxDialPause is the longest pause between two tries to connect.
const maxDialPause = 5 * time.Second

// owner are the credentials that emulators take for those of the owner.
type owner struct{}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (owner) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer owner"}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (owner) RequireTransportSecurity() bool { return false }

// jobsPerLine keeps below the 100 streams that a connection of Google's may have: a
// job takes two, and a stream too many would wait until another ends.
const jobsPerLine = 40

// lines are the connections of listeners.
type lines struct {
	dial func(context.Context) (*firestore.Client, error)

	mu     sync.Mutex // protects the fields below
	open   []*line
	closed bool
}

// line is a connection with the number of jobs that are listened to on it.
type line struct {
	client *firestore.Client
	jobs   int
}

var errClosed = errors.New("the lines are closed")

// take returns a line that has room for one more job.
func (l *lines) take(ctx context.Context) (*line, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	for _, one := range l.open {
		if one.jobs < jobsPerLine {
			one.jobs++
			return one, nil
		}
	}
	client, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	one := &line{client: client, jobs: 1}
	l.open = append(l.open, one)
	return one, nil
}

// give takes a job off a line, and hangs up when it was the last one.
func (l *lines) give(one *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.jobs--
	if one.jobs == 0 && !l.closed {
		l.open = slices.DeleteFunc(l.open, func(other *line) bool { return other == one })
		_ = one.client.Close()
	}
}

// close hangs all up.
func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var errs []error
	for _, one := range l.open {
		errs = append(errs, one.client.Close())
	}
	l.open = nil
	return errors.Join(errs...)
}
