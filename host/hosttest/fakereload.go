package hosttest

import (
	"context"

	"github.com/jobhost/jobhost"
)

// Reload implements [jobhost.Reloader]: the fake's worker never changes.
func (f *Fake) Reload(_ context.Context, worker string) (jobhost.Reload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return jobhost.Reload{}, problem(jobhost.CodeUnavailable, "", "the host is stopping")
	case worker != "" && worker != FakeWorker:
		return jobhost.Reload{}, problem(jobhost.CodeNotFound, "worker", "there is no worker %q", worker)
	}
	return jobhost.Reload{Workers: []jobhost.WorkerReload{{
		Name: FakeWorker, Change: jobhost.WorkerUnchanged, Before: fakeDigest, SHA256: fakeDigest, Version: 1,
	}}}, nil
}

// fakeDigest is that of a plugin which is not there.
const fakeDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
