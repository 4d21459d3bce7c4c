package host_test

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

// The same suites run over HTTP in the tests of package client.
func TestHostIsAServer(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, inProcess)
}

func TestHostWorkflows(t *testing.T) {
	t.Parallel()
	t.Run("in process", func(t *testing.T) { hosttest.RunWorkflows(t, inProcess) })
}

func inProcess(t testing.TB) jobhost.Server { return hosttest.Open(t) }
