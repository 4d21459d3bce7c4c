package test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/client"
)

// load is what clients of all three hosts submit in one round, with the outside world's account of it.
type load struct {
	t     *testing.T
	hosts [3]*member
	door  string // its URL
	round int
	ctx   context.Context //nolint:containedctx // the round's
	over  chan struct{}   // closed when nothing more is to be submitted
	done  sync.WaitGroup

	mu     sync.Mutex // protects the rest
	acked  map[string][]string
	acks   int
	last   time.Time     // of the last acknowledgement
	widest time.Duration // the longest time without one
	denied int           // calls of guests that the host could not answer
}

// Kinds of work that is acknowledged.
const (
	plain    = "plain"  // returns its payload
	adds     = "adds"   // adds one to a key of the round, and returns the sum
	parents  = "parent" // submits a child that does so to another key
	keyed    = "keyed"  // goes through the door
	workflow = "wf"
)

// patience is how long a client waits for an answer before it asks another host.
const patience = 2 * time.Second

// begin begins a round of load.
func (c *trio) begin(ctx context.Context, round int) *load {
	l := &load{t: c.t, hosts: c.hosts, door: c.door.URL, round: round, ctx: ctx, over: make(chan struct{}), acked: map[string][]string{}}
	c.t.Cleanup(l.done.Wait) // of a test that has failed before the end
	pause := time.Duration(often(50, 20)) * time.Millisecond
	for producer := range 6 {
		l.done.Go(func() { l.every(pause, producer, []string{plain, adds, parents}[producer%3], l.submit) })
	}
	l.done.Go(func() { l.every(200*time.Millisecond, 6, keyed, l.submit) })
	l.done.Go(func() { l.every(300*time.Millisecond, 7, workflow, l.startWorkflow) })
	return l
}

// every does something at an interval, with an id that no other has, until the load is over.
func (l *load) every(d time.Duration, producer int, kind string, do func(at int, kind, id string) bool) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d-%d-%d", kind, l.round, producer, i)
		if do(producer+i, kind, id) {
			l.mu.Lock()
			l.acked[kind] = append(l.acked[kind], id)
			l.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-l.over:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *load) submit(at int, kind, id string) bool {
	spec := jobhost.Spec{ID: id, Worker: "echo", Payload: []byte(id)}
	switch kind {
	case adds:
		spec.Worker, spec.Payload = "count", []byte(l.key(adds))
	case parents:
		spec.Worker, spec.Payload = "parent", []byte("worker: count\n\n"+l.key(parents))
	case keyed:
		spec.Worker, spec.Payload, spec.ConcurrencyKey = "door", []byte("GET "+l.door+"/"), "door"
	}
	return l.try(at, func(ctx context.Context, c *client.Client) error {
		receipt, err := c.Submit(ctx, spec)
		if err == nil && receipt.ID != id {
			return fmt.Errorf("job %s was acknowledged as %s", id, receipt.ID)
		}
		return err
	})
}

// key is the one that jobs of a kind count themselves under.
func (l *load) key(kind string) string { return fmt.Sprintf("%s/%d", kind, l.round) }

func (l *load) startWorkflow(at int, _, id string) bool {
	return l.try(at, func(ctx context.Context, c *client.Client) error {
		_, err := c.StartWorkflow(ctx, jobhost.WorkflowStart{ID: id, Definition: counted()})
		return err
	}) && l.try(at, func(ctx context.Context, c *client.Client) error {
		return c.SignalWorkflow(ctx, id, jobhost.WorkflowSignal{Name: "go", ID: "once", Payload: []byte("1")})
	})
}

// try asks one host after the other until one acknowledges. It reports whether one has.
func (l *load) try(first int, ask func(context.Context, *client.Client) error) bool {
	for at := first; l.ctx.Err() == nil; at++ {
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		err := ask(ctx, l.hosts[at%len(l.hosts)].api)
		cancel()
		switch code := jobhost.CodeOf(err); {
		case err == nil:
			l.ack()
			return true
		case code != jobhost.CodeUnavailable && code != jobhost.CodeExhausted && !errors.Is(err, context.DeadlineExceeded):
			l.t.Errorf("round %d: a client is answered %s: %v", l.round, code, err)
			return false
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-l.ctx.Done():
		}
	}
	return false
}

func (l *load) ack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.last.IsZero() {
		l.widest = max(l.widest, now.Sub(l.last))
	}
	l.acks++
	l.last = now
}

// mark begins to measure the longest time without an acknowledgement.
func (l *load) mark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.widest = 0
}

// gap returns the longest time since mark.
func (l *load) gap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.widest
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// await waits until so many more were acknowledged.
func (l *load) await(c *trio, more int) {
	l.t.Helper()
	until(l.ctx, c, fmt.Sprint(more, " more acknowledgements"), func() func() bool {
		want := l.count() + more
		return func() bool { return l.count() >= want }
	}())
}

// until waits until something holds.
func until(ctx context.Context, c *trio, what string, holds func() bool) {
	c.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatalf("wait for %s: %v\n%s", what, ctx.Err(), c.logs())
		}
	}
}

// end ends the load. All that was begun is acknowledged then.
func (l *load) end() {
	l.t.Helper()
	close(l.over)
	l.done.Wait()
	if l.ctx.Err() != nil {
		l.t.Fatalf("round %d: what a client asks for is never acknowledged", l.round)
	}
}

// unanswered reports whether a result is what guests return when a call of theirs is answered that the host can't do
// that now: an errno. All else that they return is no such number.
func unanswered(result string) bool { return strings.HasPrefix(result, "-") }

// errnos are all of them.
var errnos = regexp.MustCompile(`-\d+`)

// check checks that all that was acknowledged has ended, and had its effect once. Without a database calls of guests
// may be left unanswered.
func (l *load) check(want string, database bool) {
	l.t.Helper()
	l.results(plain, l.acked[plain], nil)
	l.results(keyed, l.acked[keyed], nil)
	l.sums(adds, l.acked[adds])
	var children []string
	l.results(parents, l.acked[parents], func(child string) {
		if !unanswered(child) {
			children = append(children, child)
		}
	})
	l.sums(parents, children)
	for _, id := range l.acked[workflow] {
		run, err := l.hosts[0].api.WaitWorkflow(l.ctx, id)
		got := outcomeOf(&run)
		if !database {
			got = errnos.ReplaceAllString(got, "1")
		}
		if err != nil || got != want {
			l.t.Errorf("round %d: workflow %s comes to %s, %v\nwant %s", l.round, id, got, err, want)
		}
	}
	if l.denied > 0 {
		l.t.Logf("round %d: the calls of %d guests were not answered", l.round, l.denied)
	}
	if l.denied > 0 && database {
		l.t.Error("but the database was there")
	}
}

// outcomeOf returns how a workflow and its steps have ended.
func outcomeOf(run *jobhost.WorkflowRun) string {
	text := string(run.Status) + " " + string(run.Output)
	for i := range run.Steps {
		s := &run.Steps[i]
		text += fmt.Sprintf("\n%s %s %s", s.Name, s.Status, s.Output)
	}
	return text
}

// results waits for the end of jobs, which is a success, and passes on what they returned.
func (l *load) results(kind string, ids []string, see func(result string)) {
	l.t.Helper()
	if len(ids) == 0 {
		l.t.Errorf("round %d: no job %s was acknowledged", l.round, kind)
	}
	var all errgroup.Group
	all.SetLimit(8)
	var mu sync.Mutex // held while a result is looked at
	for i, id := range ids {
		all.Go(func() error {
			api := l.hosts[i%len(l.hosts)].api
			job, err := api.Wait(l.ctx, id)
			if err != nil || job.State != jobhost.Succeeded {
				l.t.Errorf("round %d: acknowledged job %s is %q at the end, %v: %+v", l.round, id, job.State, err, job.Failures)
				return nil
			}
			result, err := api.Result(l.ctx, id, 0)
			if err != nil || kind == plain && string(result.Data) != id {
				l.t.Errorf("round %d: job %s has the result %q, %v", l.round, id, result.Data, err)
			}
			if see != nil {
				mu.Lock()
				defer mu.Unlock()
				see(string(result.Data))
			}
			return nil
		})
	}
	_ = all.Wait()
}

// sums checks that jobs have ended and counted themselves once each. The sum that an attempt gets may lack what
// others add meanwhile, so what is stored is looked at.
func (l *load) sums(kind string, ids []string) {
	l.t.Helper()
	counted := 0
	l.results(kind, ids, func(sum string) {
		if !unanswered(sum) {
			counted++
		}
	})
	_, value, err := l.hosts[0].api.KeyValue(l.ctx, "count", l.key(kind))
	if err != nil || string(value) != strconv.Itoa(counted) {
		l.t.Errorf("round %d: %s is %s, %v; %d jobs of %d have counted themselves", l.round, l.key(kind), value, err, counted, len(ids))
	}
	l.denied += len(ids) - counted
}
