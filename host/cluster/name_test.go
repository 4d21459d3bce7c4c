package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/cluster"
)

// TestNameOfEndedProcess: a host that has the lock of the folder needn't wait until the row of the process that had it
// before is old; here that is renewed all the time.
func TestNameOfEndedProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.join(t, "b")
	b.leads(t)
	in := func(dir string) func(*cluster.Config) {
		return func(cfg *cluster.Config) { cfg.Folder, cfg.Place, cfg.StandBy = dir, "here", true }
	}
	dir := t.TempDir()
	first := w.join(t, "a", in(dir))
	first.standsBy(t, "b")
	first.FreeFolder()
	second := w.join(t, "a", in(dir))
	second.standsBy(t, "b")
	third := w.join(t, "a", in(t.TempDir()))
	if err := <-third.ended; err == nil || !strings.Contains(err.Error(), `another host of the name "a" is alive`) {
		t.Errorf("a host with another folder: %v", err)
	}
}

// TestRequestsToHostWithoutName: requests are answered soon while the host still waits for its name.
func TestRequestsToHostWithoutName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.join(t, "a").leads(t)
	second := w.join(t, "a", func(cfg *cluster.Config) { cfg.RequestWait = time.Hour })
	if got := second.get(t, "/"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "has not joined its cluster") {
		t.Errorf("it answers %s", got)
	}
	if err := second.Ready(); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("it is ready: %v", err)
	}
	<-second.ended
}
