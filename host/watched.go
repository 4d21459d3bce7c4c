package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
)

// watched is a plugin in the process of the host of which making sandboxes is noted as
// loading is, until one was made: the first one runs the plugin's initialisation, for
// whatever task, fiber or reload needs it.
type watched struct {
	runtime.Plugin

	host           *Host
	worker, digest string
	made           atomic.Bool
}

// Instantiate implements [runtime.Plugin].
func (p *watched) Instantiate(ctx context.Context) (runtime.Instance, error) {
	if p.made.Load() {
		return p.Plugin.Instantiate(ctx)
	}
	noted := p.host.noteLoad(p.worker, p.digest)
	defer noted.End()
	instance, err := p.Plugin.Instantiate(ctx)
	if err == nil {
		p.made.Store(true)
	}
	return instance, err
}

// absent stands for the plugin of a worker that is held because it can't be loaded.
type absent struct{ worker *settings }

// Info implements [runtime.Plugin]. What only loading tells is not there.
func (p absent) Info() runtime.Info {
	sum := sha256.Sum256(p.worker.Plugin)
	return runtime.Info{SHA256: hex.EncodeToString(sum[:]), Size: len(p.worker.Plugin), ABI: p.worker.ABI, Entry: p.worker.Entry}
}

// Instantiate implements [runtime.Plugin].
func (p absent) Instantiate(context.Context) (runtime.Instance, error) {
	return nil, &jobhost.Error{Code: jobhost.CodeUnavailable, Field: "worker", Message: "the plugin of worker " + p.worker.Name + " is not loaded"}
}

// Close implements [runtime.Plugin].
func (p absent) Close(context.Context) error { return nil }
