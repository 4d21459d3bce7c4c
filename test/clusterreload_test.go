package test

import (
	"syscall"
	"testing"

	"github.com/jobhost/jobhost"
)

// A host that stands by checks its manifest at SIGHUP, and leads by the last one without faults.
func TestClusterReloadOfAStandby(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	leader, _ := c.awaitLeader(nil)
	h := c.standby(leader, 0)
	added := "[worker.added]\nplugin = \"outcomes.wasm\"\nentry = \"echo\"\n[worker.echo]"
	h.replace("[worker.echo]", added)
	h.process.signal(syscall.SIGHUP)
	h.process.awaitLog("the manifest has no faults")
	h.replace("[worker.added]", "[worker.added]\nentyr = \"echo\"")
	h.process.signal(syscall.SIGHUP)
	h.process.awaitLog("the manifest has faults")
	h.process.awaitLog("entyr")
	h.process.signal(syscall.SIGUSR1)
	h.process.awaitLog("stands by")
	if _, err := h.api.LeadHost(t.Context(), h.name); err != nil {
		t.Fatal(err)
	}
	c.awaitLeader(leader)
	job, err := h.api.SubmitWait(t.Context(), jobhost.Spec{Worker: "added", Payload: []byte("hello")})
	if err != nil || job.State != jobhost.Succeeded {
		t.Errorf("%+v, %v\n%s", job, err, c.logs())
	}
	c.stop()
}
