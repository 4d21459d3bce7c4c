package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// A job ends each host that runs it, as soon as it begins and whatever process it runs in. It is a dead letter after
// three hosts more than it has attempts; the jobs that ran beside it have theirs still, and end.
func TestClusterJobThatEndsItsHosts(t *testing.T) {
	t.Parallel()
	const attempts = 2
	c := newTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	c.awaitLeader(nil)
	var others []string
	for i := range 12 {
		id := fmt.Sprint("other-", i)
		// With one key they run one after the other, so that one is under way at each death.
		c.submit(ctx, jobhost.Spec{ID: id, Worker: "door", Payload: []byte("GET " + c.door.URL + "/"), ConcurrencyKey: "other", MaxAttempts: 1})
		others = append(others, id)
	}
	c.submit(ctx, jobhost.Spec{ID: "evil", Worker: "door", Payload: []byte("GET " + c.door.URL + "/knock"), MaxAttempts: attempts})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.outcome(ctx, "evil")
	}()
	deaths := 0
	for evil := true; evil; {
		select {
		case <-c.door.knocks:
			deaths++
			leader, _ := c.awaitLeader(nil)
			leader.process.kill()
			leader.process = leader.begin("run")
		case <-ended:
			evil = false
		}
	}
	if deaths > attempts+3 || deaths <= attempts {
		t.Errorf("it has ended %d hosts", deaths)
	}
	job := c.outcome(ctx, "evil")
	if job.State != jobhost.Dead || len(job.Failures) != attempts {
		t.Errorf("%+v", job)
	}
	for _, f := range job.Failures {
		if f.Code != jobhost.FailHostCrash {
			t.Errorf("%+v", f)
		}
	}
	for _, id := range others {
		if job := c.outcome(ctx, id); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 1 {
			t.Errorf("%+v", job)
		}
	}
	if t.Failed() {
		t.Log(c.logs())
	}
	c.stop()
}

// Hosts are killed from outside again and again while they run what may be run once. Each of it ends, at its first
// attempt.
func TestClusterKillsCostNoAttempt(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	c.door.hold()
	var ids []string
	for i := range 4 {
		id := fmt.Sprint("job-", i)
		c.submit(ctx, jobhost.Spec{ID: id, Worker: "door", Payload: []byte("GET " + c.door.URL + "/"), MaxAttempts: 1})
		ids = append(ids, id)
	}
	for range 2 {
		until(ctx, c, "attempts at the door", func() bool { return c.door.callers() > 0 })
		leader, _ := c.awaitLeader(nil)
		<-time.After(1500 * time.Millisecond) // in which it notes what runs
		leader.process.kill()
		c.door.forget()
		c.awaitLeader(leader)
		leader.process = leader.begin("run") // not before: it would lead again
	}
	c.door.release()
	for _, id := range ids {
		if job := c.outcome(ctx, id); job.State != jobhost.Succeeded || job.Tasks[0].Attempt != 1 {
			t.Errorf("%+v", job)
		}
	}
	if t.Failed() {
		t.Log(c.logs())
	}
	c.stop()
}

// submit submits a job until it is acknowledged.
func (c *trio) submit(ctx context.Context, spec jobhost.Spec) {
	c.t.Helper()
	for at := 0; ; at++ {
		_, err := c.hosts[at%len(c.hosts)].api.Submit(ctx, spec)
		if err == nil {
			return
		}
		if jobhost.CodeOf(err) != jobhost.CodeUnavailable || ctx.Err() != nil {
			c.t.Fatal(err)
		}
	}
}

// outcome waits for the end of a job, over all ends of hosts.
func (c *trio) outcome(ctx context.Context, id string) jobhost.Job {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for at := 0; ; at++ {
		job, err := c.hosts[at%len(c.hosts)].api.Wait(ctx, id)
		if err == nil || ctx.Err() != nil {
			return job
		}
		<-tick.C
	}
}
