package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
)

// Batcher submits jobs of many goroutines together: while one batch is on its
// way, those that come wait for the next one. Nothing waits for a timer, so a
// job that comes alone is submitted at once, and under load a request holds
// hundreds. It is safe for use by many goroutines.
type Batcher struct {
	client *Client
	limit  int

	mu      sync.Mutex // protects the fields below
	waiting []*batched
	sending bool // a caller sends, and goes on until nothing waits
}

// batched is a job that waits for its batch and then for its answer.
type batched struct {
	spec   jobhost.Spec
	answer chan jobhost.Submitted // holds one
	lead   chan struct{}          // closed when its caller is to send the next batch
}

// NewBatcher returns a batcher that submits up to limit jobs with one request;
// 0 = 1,000.
func (c *Client) NewBatcher(limit int) *Batcher {
	if limit <= 0 {
		limit = 1000
	}
	return &Batcher{client: c, limit: limit}
}

// batchTime bounds a request, since it is not any one caller's.
const batchTime = time.Minute

// Submit returns when the job is durable, like [Client.Submit]. A spec without
// ID gets one. When ctx ends first the job may be taken or not; the caller that
// happens to send the batch stays until its answer is there, up to a minute.
func (b *Batcher) Submit(ctx context.Context, spec jobhost.Spec) (jobhost.Receipt, error) {
	fresh := nameJob(&spec)
	job := &batched{spec: spec, answer: make(chan jobhost.Submitted, 1), lead: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, job)
	leads := !b.sending
	b.sending = true
	b.mu.Unlock()
	if leads {
		close(job.lead)
	}
	select {
	case <-job.lead:
		b.send(ctx)
	case a := <-job.answer:
		return told(a, fresh)
	case <-ctx.Done():
		if !b.withdraw(job) {
			b.passOn(job)
		}
		return jobhost.Receipt{}, context.Cause(ctx)
	}
	// It led, and was in the batch that it sent.
	select {
	case a := <-job.answer:
		return told(a, fresh)
	default:
		return jobhost.Receipt{}, errors.New("submit in a batch: there is no answer")
	}
}

func told(a jobhost.Submitted, fresh bool) (jobhost.Receipt, error) {
	if fresh {
		a.Receipt.Deduplicated = false // it was this very call
	}
	return a.Receipt, a.Err
}

// send submits what waits, and makes the first of those that came meanwhile
// send the next batch.
func (b *Batcher) send(ctx context.Context) {
	b.mu.Lock()
	n := min(len(b.waiting), b.limit)
	jobs := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	specs := make([]jobhost.Spec, n)
	for i, job := range jobs {
		specs[i] = job.spec
	}
	// The caller's end must not take the others' jobs with it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTime)
	defer cancel()
	answers, err := b.client.SubmitBatch(ctx, specs)
	for i, job := range jobs {
		if err != nil {
			job.answer <- jobhost.Submitted{Err: err}
		} else {
			job.answer <- answers[i]
		}
	}
	b.next()
}

// next makes the first that waits send the next batch.
func (b *Batcher) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.sending = false
		return
	}
	close(b.waiting[0].lead)
}

// withdraw takes a job back that is in no batch yet and was not told to send
// one; false = it was, or is on its way.
func (b *Batcher) withdraw(job *batched) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-job.lead:
		return false
	default:
	}
	for i, other := range b.waiting {
		if other == job {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return true
		}
	}
	return true // in a batch that another caller sends
}

// passOn lets another caller send, in place of one that gave up when it was told to.
func (b *Batcher) passOn(job *batched) {
	b.mu.Lock()
	for i, other := range b.waiting {
		if other == job {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			break
		}
	}
	b.mu.Unlock()
	b.next()
}
