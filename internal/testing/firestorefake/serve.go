package firestorefake

import (
	"net"
	"sync"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Serve starts a server on the loopback that ends with the test, and returns its address.
func Serve(t testing.TB, fake *Server, opts ...grpc.ServerOption) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts = append(opts, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	server := grpc.NewServer(opts...)
	pb.RegisterFirestoreServer(server, fake)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		wg.Wait()
	})
	return listener.Addr().String()
}
