package link

import (
	"context"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// Name is by which go-plugin knows the worker.
const Name = "worker"

// Handshake keeps a plugin from being run by hand. It is no secret.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: Protocol, MagicCookieKey: "JOBHOST_PLUGIN", MagicCookieValue: "worker"}
}

// Serve serves a program until the host ends the stream, and then ends the process.
// Each of more registers a further service.
func Serve(p Program, more ...func(*grpc.Server)) {
	s := newServer(p)
	go func() {
		<-s.ended
		// The host has ended the stream, or is gone: nothing is left to do for anybody.
		os.Exit(0)
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{Protocol: {Name: &served{server: s, more: more}}},
		Logger:           hclog.NewNullLogger(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts,
				grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
				grpc.InitialWindowSize(Window), grpc.InitialConnWindowSize(Window))...)
		},
	})
}

// served is the worker's side of go-plugin's plugin.
type served struct {
	plugin.NetRPCUnsupportedPlugin

	server *server
	more   []func(*grpc.Server)
}

// GRPCServer implements [plugin.GRPCPlugin].
func (s *served) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	protocol.RegisterWorkerServer(g, s.server)
	for _, register := range s.more {
		register(g)
	}
	return nil
}

// GRPCClient implements [plugin.GRPCPlugin]; a worker is no client.
func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errEnded
}
