package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// rememberFor is how long the worker remembers which subscribers have an event.
// An event is resubmitted sooner than that.
const rememberFor = 7 * 24 * time.Hour

// key identifies an event at a subscriber, so that both recognize a repetition.
func (e *event) key(subscriber string) string {
	sum := sha256.Sum256([]byte(subscriber))
	return e.ID + "/" + hex.EncodeToString(sum[:8])
}

// post returns the request for a subscriber. It is the same from any job and
// attempt.
func (e *event) post(subscriber string) jobhost.Request {
	body, err := json.Marshal(&event{ID: e.ID, Type: e.Type, Data: e.Data})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return jobhost.Request{
		Method: "POST", URL: subscriber, Body: body,
		Header: jobhost.Header{"content-type": {"application/json"}, "idempotency-key": {e.key(subscriber)}},
	}
}

// has reports whether a subscriber has the event.
func has(job *jobhost.Job, e *event, subscriber string) (bool, error) {
	version, err := job.KV().Version("has/" + e.key(subscriber))
	return version > 0, err
}

// remember records that a subscriber has the event. If another job records it at
// the same time, one of them is retried, and finds the record.
func remember(job *jobhost.Job, e *event, subscriber string) error {
	now := strconv.FormatInt(time.Now().Unix(), 10)
	if err := job.KV().CompareAndSet("has/"+e.key(subscriber), 0, []byte(now)); err != nil {
		return err
	}
	return job.KV().Set("has/"+e.key(subscriber), []byte(now), rememberFor)
}

// verdict returns why a subscriber has not accepted the event, nil if it has.
func verdict(answer jobhost.Answer) error {
	switch {
	case answer.Err != nil:
		return answer.Err
	case answer.Response.OK():
		return nil
	case answer.Response.Status < 400: // a redirect that leads nowhere
		return jobhost.Permanent(errors.New("the server answered " + strconv.Itoa(answer.Response.Status)))
	}
	return answer.Response.Err()
}

// final reports whether another attempt would be useless.
func final(err error) bool {
	f, ok := errors.AsType[*jobhost.Failure](err)
	return ok && f.Permanent || errors.Is(err, jobhost.ErrInvalid)
}
