// Command webhook-fanout is a worker that posts an event to all its subscribers at
// the same time. Those that could not accept it get a job of their own, so that
// the queue retries for them alone; those that have it don't get it again if the
// event is submitted another time.
package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Learnt before the sandbox's memory is kept for all jobs to start from.
	_ = json.Unmarshal([]byte(`{}`), &event{})
	_, _ = json.Marshal(outcome{Refused: []refusal{{}}})
	jobhost.Handle(fanOut)
}

func main() {}

// deliver is for the jobs of single subscribers: see [fanOut].
//
//go:wasmexport deliver
func deliver(n uint32) uint64 { return jobhost.Entry(n, deliverOne) }

// event is the payload, and with one subscriber that of a job for deliver.
type event struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
	Subscribers []string        `json:"subscribers,omitempty"`
}

// outcome is the result.
type outcome struct {
	Event     string    `json:"event"`
	Delivered int       `json:"delivered"`
	Had       int       `json:"had"` // subscribers that had it before
	Retrying  []string  `json:"retrying,omitempty"`
	Refused   []refusal `json:"refused,omitempty"` // permanently
}

type refusal struct {
	Subscriber string `json:"subscriber"`
	Reason     string `json:"reason"`
}

// mostSubscribers keeps a job within its limits on requests, changed keys and
// submitted jobs.
const mostSubscribers = 1000

// fanOut posts the event to those who don't have it. Who has it is remembered
// when the job succeeds; if it is stopped half-way, the next attempt posts to
// all again, with the same keys, by which receivers recognize it.
func fanOut(job *jobhost.Job) ([]byte, error) {
	e, err := read(job.Input())
	if err != nil {
		return nil, err
	}
	out := outcome{Event: e.ID}
	var to []string
	for _, subscriber := range e.Subscribers {
		had, err := has(job, e, subscriber)
		if err != nil {
			return nil, err
		}
		if had {
			out.Had++
		} else {
			to = append(to, subscriber)
		}
	}
	requests := make([]jobhost.Request, len(to))
	for i, subscriber := range to {
		requests[i] = e.post(subscriber)
	}
	done := int64(0)
	for i, answer := range job.FetchAll(requests, 0) {
		if err := out.take(job, e, to[i], verdict(answer)); err != nil {
			return nil, err
		}
		done++
		job.Progress(done, int64(len(to)))
	}
	return json.Marshal(out)
}

// take records the result of one subscriber.
func (o *outcome) take(job *jobhost.Job, e *event, subscriber string, err error) error {
	if err == nil {
		o.Delivered++
		return remember(job, e, subscriber)
	}
	if final(err) {
		o.Refused = append(o.Refused, refusal{subscriber, err.Error()})
		return nil
	}
	if errors.Is(err, jobhost.ErrStopped) {
		return err // nothing is recorded: the next attempt starts over
	}
	one := *e
	one.Subscribers = []string{subscriber}
	payload, err := json.Marshal(&one)
	if err != nil {
		return err
	}
	o.Retrying = append(o.Retrying, subscriber)
	_, err = job.Submit(jobhost.Spec{Worker: job.Worker(), Entry: "deliver", Payload: payload, Labels: map[string]string{"event": e.ID}})
	return err
}

// deliverOne posts to one subscriber. After an error the queue retries, as the
// manifest says, until the job is a dead letter.
func deliverOne(job *jobhost.Job) ([]byte, error) {
	e, err := read(job.Input())
	if err != nil {
		return nil, err
	}
	had, err := has(job, e, e.Subscribers[0])
	if had || err != nil {
		return []byte("it has it already"), err
	}
	response, err := job.Fetch(e.post(e.Subscribers[0]))
	if err := verdict(jobhost.Answer{Response: response, Err: err}); err != nil {
		return nil, err
	}
	return []byte("delivered"), remember(job, e, e.Subscribers[0])
}

// read parses an event. Faults in it can't be cured by another attempt.
func read(payload []byte) (*event, error) {
	e := &event{}
	if err := json.Unmarshal(payload, e); err != nil {
		return nil, jobhost.Permanent(err)
	}
	if e.ID == "" || len(e.ID) > 200 || strings.ContainsFunc(e.ID, func(r rune) bool { return r < '!' || r > '~' }) ||
		len(e.Subscribers) == 0 || len(e.Subscribers) > mostSubscribers {
		return nil, jobhost.Permanent(&jobhost.Failure{
			Err: errors.New("an event has an id of up to 200 letters and 1 to 1000 subscribers"), Code: "bad_event", Category: jobhost.Validation,
		})
	}
	var each []string
	for _, subscriber := range e.Subscribers {
		if !slices.Contains(each, subscriber) {
			each = append(each, subscriber)
		}
	}
	e.Subscribers = each
	return e, nil
}
