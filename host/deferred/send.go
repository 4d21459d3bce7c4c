package deferred

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/pending"
	"github.com/jobhost/jobhost/netproxy"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// sender sends requests.
type sender struct{ cfg Config }

// run makes one attempt at a request.
func (s *sender) run(ctx context.Context, at *hostcall.Attempt) jobhost.Outcome {
	var r request
	if err := json.Unmarshal(at.Input, &r); err != nil {
		return at.Failure("bad_request", jobhost.CategoryValidation, "the payload is no deferred request")
	}
	pool, loaded := s.cfg.Pool(r.Worker)
	if !loaded {
		return snooze(awaitWorker) // until the worker is back in the manifest
	}
	began := time.Now()
	message, status, err := s.exchange(ctx, pool, &r)
	switch {
	case ctx.Err() != nil:
		return jobhost.Outcome{} // stopped
	case errors.Is(err, netproxy.ErrExhausted), errors.Is(err, netproxy.ErrClosed):
		return snooze(awaitRoom) // nothing was sent, or the grant has changed
	case err != nil && at.Number < MaxAttempts && mayPass(err):
		return failed(at, err)
	case err != nil:
		message = hostcall.AppendNoResponse(nil, err)
	}
	took := time.Since(began)
	lost := s.bring(ctx, at, &r, message)
	if jobhost.CodeOf(lost) == jobhost.CodeTooLarge && err == nil {
		err = &jobhost.Error{Code: jobhost.CodeTooLarge, Field: string(netproxy.CodeTooLarge), Message: "the response is too large for a job"}
		message, status = hostcall.AppendNoResponse(nil, err), 0
		lost = s.bring(ctx, at, &r, message)
	}
	switch {
	case lost != nil && ctx.Err() != nil:
		return jobhost.Outcome{} // stopped
	case lost != nil:
		return failed(at, lost)
	}
	return summary(at, status, len(message), err, took)
}

// exchange sends a request and returns the response in the form the worker reads.
func (s *sender) exchange(ctx context.Context, pool netproxy.Pool, r *request) (message []byte, status int, err error) {
	x, err := pending.Send(pool, &hostcall.HTTPRequest{
		Method: r.Method, URL: r.URL, Header: r.Header, Body: r.Body, Key: r.Key, MaxBytes: int64(max(s.cfg.MaxPayload-headRoom, 1)),
	})
	if err != nil {
		return nil, 0, err
	}
	defer x.Drop()
	response, err := x.Response(ctx)
	if err != nil {
		return nil, 0, err
	}
	maps.DeleteFunc(response.Header, func(name string, _ []string) bool { // only the host may set these
		return strings.HasPrefix(strings.ToLower(name), ownFields)
	})
	return hostcall.AppendResponse(nil, response), response.Status, nil
}

// bring submits the job with the response, together with the success of this one.
// If the worker takes no jobs it waits a while instead of sending the request
// again.
func (s *sender) bring(ctx context.Context, at *hostcall.Attempt, r *request, message []byte) error {
	jobs, ok := at.Services.(hostcall.Jobs)
	if !ok {
		return errors.New("there is no queue to submit to")
	}
	spec := &jobhost.Spec{
		Worker: r.Worker, Entry: r.Entry, Payload: withFields(message, at.Job, r.Args), ContentType: "application/http",
		Priority: at.Priority, Labels: at.Labels,
	}
	for began := time.Now(); ; {
		_, err := jobs.SubmitJob(at, spec, hostcall.SubmitWithSuccess)
		switch jobhost.CodeOf(err) {
		case jobhost.CodeExhausted, jobhost.CodeUnavailable, jobhost.CodeNotFound:
		default:
			return err
		}
		if time.Since(began) > bringWithin {
			return err
		}
		select {
		case <-time.After(awaitRoom):
		case <-ctx.Done():
			return err
		}
	}
}

// ownFields is the prefix of the header fields that only the host adds.
const ownFields = "jobhost-"

// withFields adds the fields that identify the request for the worker to the
// header.
func withFields(message []byte, id string, args []byte) []byte {
	line := 0
	for message[line] != '\n' { // always present: AppendResponse ends every line with one
		line++
	}
	fields := ownFields + "request: " + id + "\n" + ownFields + "args: " + base64.StdEncoding.EncodeToString(args) + "\n"
	whole := make([]byte, 0, len(message)+len(fields))
	whole = append(append(whole, message[:line+1]...), fields...)
	return append(whole, message[line+1:]...)
}

// mayPass reports whether a request without a response may get one on a retry.
func mayPass(err error) bool {
	switch jobhost.CodeOf(err) {
	case jobhost.CodeDenied, jobhost.CodeInvalid, jobhost.CodeTooLarge:
		return false
	}
	return true
}

func snooze(d time.Duration) jobhost.Outcome {
	return jobhost.Outcome{Kind: jobhost.OutcomeSnoozed, Snooze: d}
}

// failed is the outcome of an attempt that will be retried.
func failed(at *hostcall.Attempt, err error) jobhost.Outcome {
	code, message := "network", "there was no response"
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		message = e.Message
		if e.Field != "" {
			code = e.Field
		}
	}
	category := jobhost.CategoryNetwork
	if code == string(netproxy.CodeTimeout) {
		category = jobhost.CategoryTimeout
	}
	return at.Failure(code, category, message)
}

// summary is the result of a request whose response was delivered.
func summary(at *hostcall.Attempt, status, size int, err error, took time.Duration) jobhost.Outcome {
	result := struct {
		Status   int     `json:"status"`
		Error    string  `json:"error,omitempty"`
		Bytes    int     `json:"bytes"`
		Duration float64 `json:"duration_ms"`
	}{Status: status, Bytes: size, Duration: float64(took.Microseconds()) / 1000}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		result.Error = e.Field
	}
	text, jsonErr := json.Marshal(result)
	if jsonErr != nil {
		text = nil
	}
	return at.Outcome(text)
}
