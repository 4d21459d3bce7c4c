package hosttest_test

import (
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/hosttest"
)

func newFake(t testing.TB) jobhost.Server {
	fake := hosttest.NewFake(hosttest.FakeConfig{})
	t.Cleanup(fake.Close)
	return fake
}

func TestFake(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, newFake)
}

func TestFakeWorkflows(t *testing.T) {
	t.Parallel()
	hosttest.RunWorkflows(t, newFake)
}
