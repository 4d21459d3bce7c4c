package link

import (
	"context"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// Name is the name by which go-plugin knows the worker.
const Name = "worker"

// Handshake keeps a plugin from being run by hand. It is not secret.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: Protocol, MagicCookieKey: "JOBHOST_PLUGIN", MagicCookieValue: "worker"}
}

// Serve serves a program until the host ends the stream, and then ends the process.
func Serve(p Program) { (&served{server: newServer(p)}).serve() }

// ServePipes is Serve for a program that receives tasks over pipes with which it was started, see [NewEnds], instead
// of gRPC. register registers a further service.
func ServePipes(p Program, register func(*grpc.Server)) {
	(&served{server: newServer(p), pipes: true, register: register}).serve()
}

// served is the worker's side of go-plugin's plugin.
type served struct {
	plugin.NetRPCUnsupportedPlugin

	server   *server
	pipes    bool // tasks arrive over pipes
	register func(*grpc.Server)
}

func (s *served) serve() {
	go func() {
		<-s.server.ended
		// The host has ended the stream, or is gone: nothing is left to do.
		os.Exit(0)
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{Protocol: {Name: s}},
		Logger:           hclog.NewNullLogger(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts,
				grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
				grpc.InitialWindowSize(Window), grpc.InitialConnWindowSize(Window))...)
		},
	})
}

// GRPCServer implements [plugin.GRPCPlugin].
func (s *served) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	protocol.RegisterWorkerServer(g, s.server)
	if s.register != nil {
		s.register(g)
	}
	if !s.pipes {
		return nil
	}
	ends, err := inherited()
	if err != nil {
		return err
	}
	go func() {
		// The process ends with the stream, however that ended.
		_ = s.server.serveStream(fromHost{NewPipes[*protocol.ToHost, *protocol.ToWorker](ends.Read, ends.Write)}, ends.Bell)
	}()
	return nil
}

// GRPCClient implements [plugin.GRPCPlugin]; a worker is not a client.
func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errEnded
}

// fromHost adapts pipes to a stream.
type fromHost struct {
	*Pipes[*protocol.ToHost, *protocol.ToWorker]
}

// Recv implements stream.
func (f fromHost) Recv() (*protocol.ToWorker, error) {
	m := &protocol.ToWorker{}
	return m, f.Receive(m)
}
