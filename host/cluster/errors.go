package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// What clients get instead of an answer of the leader.
var (
	errNoLeader = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, RetryAfter: 2 * time.Second,
		Message: "no host of the cluster leads", Hint: "it can take a few seconds until another host leads; jobhost host ls lists the hosts",
	}
	errNotJoined = &jobhost.Error{
		Code: jobhost.CodeUnavailable, Field: jobhost.FieldStart, RetryAfter: time.Second,
		Message: "this host has not joined its cluster yet", Hint: "another process has its name. If that was killed the name is free after some seconds; if it runs, the log of this host says so",
	}
	errStopping = &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: time.Second, Message: "this host is stopping", Hint: "ask another host of the cluster",
	}
	errLeaderChanged = &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: time.Second,
		Message: "another host became the leader while the request was being sent; it was not carried out", Hint: "send it again",
	}
	errUnreached = &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: 2 * time.Second, Message: "the host that leads can't be reached from this one",
		Hint: "ask another host; jobhost host ls lists the hosts, and the log of this one says why",
	}
	errLeaderLost = &jobhost.Error{
		Code:    jobhost.CodeUnavailable,
		Message: "the host that leads was lost before it answered: the request may have been carried out or not",
		Hint:    "look whether it was, or send it again if that does no harm: a submit with an id of your own can be sent again",
	}
)

// errUnreachedAt is errUnreached for those who may know which hosts there are.
func errUnreachedAt(leader *peer) *jobhost.Error {
	return &jobhost.Error{
		Code: jobhost.CodeUnavailable, RetryAfter: 2 * time.Second,
		Message: fmt.Sprintf("the host that leads, %s at %s, can't be reached from this one", leader.name, leader.address),
		Hint: fmt.Sprintf("ask another host; does the network between the two work, and is %s the address by which other hosts reach %s? "+
			"See advertise in [cluster]", leader.address, leader.name),
	}
}

// fail answers as the API does.
func fail(w http.ResponseWriter, status int, err *jobhost.Error) {
	p := wire.NewProblem(err)
	p.Status = status
	h := w.Header()
	h.Set("Content-Type", wire.Trouble)
	h.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(time.Duration(p.RetryAfter)/time.Second)))
	}
	body, _ := json.Marshal(p) //nolint:errchkjson // there is nothing in it that JSON can't say
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
