package jobhost

import (
	"encoding/base64"
	"strconv"
)

// Defer passes a request to the host, which sends it when this job has succeeded,
// and not at all if it fails. The response arrives as a new job of this worker,
// for entry, with this job's priority and labels; there [ParseReply] reads it. So
// the sandbox is free while the request is in flight, however long. args, up to
// 64 KiB, come with it; empty entry = the worker's own.
//
// The request is sent durably: at least once, with the same Idempotency-Key each
// time. Defer returns the id by which the reply identifies it. Errors are those
// of [Job.Send].
func (j *Job) Defer(request Request, entry string, args []byte) (id string, err error) {
	what := "defer " + request.what()
	text, ok := request.text()
	if !ok {
		return "", failed(what, ErrInvalid)
	}
	n := j.host.HTTPDefer(text, entry, args)
	if n < 0 {
		return "", failed(what, Errno(n))
	}
	id, e := j.host.Info("child." + strconv.Itoa(int(n)))
	return id, failed(what, e)
}

// Reply is the input of a job for the response to a request that another job deferred.
type Reply struct {
	// ID is the id of the request, as [Job.Defer] returned it.
	ID   string
	Args []byte
	// Answer is the response, or an error of type [*ResponseError].
	Answer
}

// Fields of a reply's header that the response did not have.
const (
	fieldRequest = "jobhost-request"
	fieldArgs    = "jobhost-args"
)

// ParseReply parses the payload of a job that delivers a response:
//
//	reply, err := jobhost.ParseReply(job.Input())
//
// The error, which is permanent, means that the payload is not a reply, as when
// the job was submitted in another way. The body is a slice of the payload.
func ParseReply(payload []byte) (*Reply, error) {
	response, err := readResponse("", payload)
	if response == nil {
		return nil, Permanent(err)
	}
	reply := &Reply{ID: response.Header.Get(fieldRequest), Answer: Answer{response, err}}
	if reply.Args, err = base64.StdEncoding.DecodeString(response.Header.Get(fieldArgs)); err != nil || reply.ID == "" {
		return nil, Permanent(failed("read reply", ErrInvalid))
	}
	delete(response.Header, fieldRequest)
	delete(response.Header, fieldArgs)
	if reply.Err != nil {
		reply.Response = nil
	}
	return reply, nil
}
