package jobhost

import "time"

// Pending is something that a job waits for: a [*Call], a [*Timer], a [*Child], a [*StateWatch] or
// an [*Inbox]. It belongs to the attempt that created it, and is dropped when that ends. It is not
// safe for concurrent use.
type Pending interface{ pending() *op }

// op is the host's handle of something pending.
type op struct {
	job    *Job
	serial uint32 // of the job: a handle is meaningless to another one
	number int32
	taken  bool  // its result is here, and the host has forgotten it
	err    error // why there is nothing to wait for
}

func (o *op) pending() *op { return o }

// op returns the op of a number; if that is an errno, the op has an error.
func (j *Job) op(what string, number int32) op {
	return op{job: j, serial: j.serial, number: number, err: failed(what, Errno(number))}
}

// fault returns why the host can't be asked for it.
func (o *op) fault() error {
	if o.err == nil && o.serial != o.job.serial {
		o.err = failed("use what another attempt began", ErrClosed)
	}
	return o.err
}

// take waits for its result and returns it, once.
func (o *op) take(what string) ([]byte, error) {
	if err := o.fault(); err != nil {
		return nil, err
	}
	message, e := o.job.host.Read(o.number)
	if e != 0 {
		return nil, failed(what, e)
	}
	o.job.host.Drop(o.number)
	o.taken = true
	return message, nil
}

// next waits for the next of its messages and returns it.
func (o *op) next(what string) ([]byte, error) {
	if err := o.fault(); err != nil {
		return nil, err
	}
	message, e := o.job.host.Next(o.number)
	return message, failed(what, e)
}

// drop gives it up.
func (o *op) drop() {
	if !o.taken && o.fault() == nil {
		o.job.host.Drop(o.number)
		o.err = errDropped
	}
}

var errDropped = failed("wait for what was dropped", ErrClosed)

// Wait waits until one of the pending is ready and returns its index; if several
// are, that of any of them. -1 = none was ready within the timeout: 0 = only
// check, [Forever] = as long as the attempt may run. Nothing is dropped: to use
// only the first one, drop the others.
//
//	call, err := job.Send(request)
//	…
//	if i, err := job.Wait(time.Second, call); i < 0 && err == nil {
//		call.Drop() // it takes too long
//	}
//
// While a worker waits it uses no CPU, and none of its goroutines runs; package
// jobhttp is for goroutines that wait at the same time.
//
// Errors: [ErrStopped] when the attempt is cancelled, which is reported once, or
// past its deadline; [ErrClosed] for something that was dropped or belongs to
// another attempt; and why a timer could not be created.
func (j *Job) Wait(timeout time.Duration, pending ...Pending) (int, error) {
	numbers := make([]int32, len(pending))
	for i, p := range pending {
		o := p.pending()
		if o.taken {
			return i, nil
		}
		if err := o.fault(); err != nil {
			return -1, err
		}
		numbers[i] = o.number
	}
	ms := int64(-1)
	if timeout != Forever {
		ms = milliseconds(timeout)
	}
	n := j.host.Wait(numbers, ms)
	if n == int32(ErrNotFound) {
		return -1, nil
	}
	if n < 0 {
		return -1, failed("wait", Errno(n))
	}
	return int(n), nil
}

// milliseconds rounds up; negative durations become 0.
func milliseconds(d time.Duration) int64 {
	ms := int64(max(d, 0) / time.Millisecond)
	if d > 0 && d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Timer is ready when its time has come, for [Job.Wait].
type Timer struct{ op }

// After returns a timer that is ready after d, rounded up to milliseconds. If
// there are too many, [Job.Wait] returns the error.
func (j *Job) After(d time.Duration) *Timer {
	return &Timer{j.op("make a timer", j.host.Timer(milliseconds(d)))}
}

// Drop gives up the timer. A job may have 4,096 timers and calls.
func (t *Timer) Drop() { t.drop() }

// Child is a job that this attempt has submitted, for [Job.Wait].
type Child struct {
	op
	id    string
	ended []byte
}

// Start is [Job.SubmitNow] for jobs to be waited for. The job continues even if
// it is not waited for. A worker that waits for jobs of its own needs another
// slot for them.
func (j *Job) Start(spec Spec) (*Child, error) {
	number, id, err := j.submit(&spec, 1)
	if err != nil {
		return nil, err
	}
	return &Child{op: j.op("", number), id: id}, nil
}

// ID returns the id of the job.
func (c *Child) ID() string { return c.id }

// Ended waits for the end of the job and returns the report, as JSON:
//
//	{"job": "…", "worker": "resize", "state": "succeeded", "ended_at": "…", "result": "…"}
//
// docs/api.md describes all of it, under callbacks. Errors are those of [Job.Wait].
func (c *Child) Ended() ([]byte, error) {
	if !c.taken {
		var err error
		if c.ended, err = c.take("wait for job " + c.id); err != nil {
			return nil, err
		}
	}
	return c.ended, nil
}
