package test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// A host that is stopped for a while, as by a debugger, a suspended machine or a
// starved one, continues where it was: nothing is lost and nothing runs twice.
func TestStoppedForAWhile(t *testing.T) {
	t.Parallel()
	pause := 2 * time.Second
	if os.Getenv("JOBHOST_CHAOS") != "" {
		pause = time.Minute
	}
	s, book := newSite(t), newLedger()
	host := s.start()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for producer := range 4 {
		load.Go(func() { submitOn(ctx, host, book, fmt.Sprintf("s%d", producer)) })
	}
	awaitAcks(t, book, 100)
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := host.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGSTOP {
			<-time.After(pause)
		}
	}
	awaitAcks(t, book, book.acks()+100)
	cancel()
	load.Wait()
	checkResults(t, host, book)
	if code := host.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	if open := book.ran(t, 0, host); open != 0 {
		t.Errorf("%d leases were open at the end", open)
	}
	book.checkRuns(t)
}

// A job that traps its sandbox each time ends as a dead letter with a record of
// each attempt, and other jobs are not affected.
func TestPoisonJob(t *testing.T) {
	t.Parallel()
	s, book := newSite(t), newLedger()
	s.replace("[worker.echo]", `[worker.poison]
plugin = "outcomes.wasm"
entry = "trap"
pool_size = 2
retry = { initial = "1ms", max = "1ms" }

[worker.echo]`)
	host := s.start()
	for i := range 20 {
		if _, err := host.Submit(t.Context(), jobhost.Spec{ID: fmt.Sprint("poison-", i), Worker: "poison"}); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("fine-", i)
		if _, err := host.Submit(t.Context(), jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)}); err != nil {
			t.Fatal(err)
		}
		book.ack(id)
	}
	checkResults(t, host, book)
	for i := range 20 {
		job, err := host.Wait(t.Context(), fmt.Sprint("poison-", i))
		if err != nil || job.State != jobhost.Dead || len(job.Failures) != 3 || job.Failures[2].Code != jobhost.FailTrap {
			t.Errorf("job %+v, %v", job, err)
		}
	}
	page, err := host.Dead(t.Context(), jobhost.DeadFilter{Worker: "poison", Code: jobhost.FailTrap, Limit: 100})
	if err != nil || len(page.Letters) != 20 {
		t.Errorf("%d dead letters, %v", len(page.Letters), err)
	}
	summary, err := host.DeadSummary(t.Context(), jobhost.DeadQuery{})
	if err != nil || summary.Deaths != 20 || summary.Codes[0].Name != jobhost.FailTrap {
		t.Errorf("summary %+v, %v", summary, err)
	}
}
