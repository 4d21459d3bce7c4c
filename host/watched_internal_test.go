package host

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/runtime"
)

// failing is a plugin whose first sandboxes can't be made.
type failing struct {
	runtime.Plugin
	left atomic.Int64
}

func (p *failing) Instantiate(context.Context) (runtime.Instance, error) {
	if p.left.Add(-1) >= 0 {
		return nil, errors.New("not yet")
	}
	return nil, nil //nolint:nilnil // a sandbox that is not used
}

// Many slots make their first sandboxes at the same time; no note stays.
func TestHammerWatched(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := journal.Open(path, func() { t.Error("a load was not noted") })
	if err != nil {
		t.Fatal(err)
	}
	plugin := &failing{}
	plugin.left.Store(1000)
	p := &watched{Plugin: plugin, host: &Host{cfg: Config{Journal: j}}, worker: "w", digest: "d"}
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for range 500 {
				_, _ = p.Instantiate(t.Context())
			}
		})
	}
	wait.Wait()
	if !p.made.Load() {
		t.Error("no sandbox was made")
	}
	again, err := journal.Open(path, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if left := again.Previous().Left; len(left) > 0 {
		t.Errorf("left %+v", left)
	}
}
