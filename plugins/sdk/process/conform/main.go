// Command conform uses each part of the SDK, so that the suite of all SDKs can see
// that it reaches the host. Each entry is one case: see package sdktest.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

func main() {
	process.Worker{Handler: upper, Entries: map[string]process.Handler{
		"echo": echo, "info": info, "log": log, "fail": fail, "retry": retry, "snooze": snooze, "panic": panics,
		"count": count, "keep": keep, "swap": swap, "draw": draw,
		"fetch": fetch, "race": race, "timeout": timeout, "child": child, "spread": spread, "defer": deferred, "inbox": inbox,
		"noop": noop, "size": size, "wait": wait, "fresh": fresh, "meet": meet, "lines": lines,
	}}.Serve()
}

func upper(_ context.Context, job *process.Job) ([]byte, error) {
	out := job.Input()
	for i, c := range out {
		if 'a' <= c && c <= 'z' {
			out[i] = c - 'a' + 'A'
		}
	}
	return out, nil
}

func echo(_ context.Context, job *process.Job) ([]byte, error) { return job.Input(), nil }

func info(_ context.Context, job *process.Job) ([]byte, error) {
	key := string(job.Input())
	group, name, _ := strings.Cut(key, ".")
	text, there := "", true
	switch group {
	case "config":
		text, there = job.Config(name)
	case "label":
		text, there = job.Label(name)
	case "secret":
		secret, err := job.Secret(name)
		if errors.Is(err, jobhost.ErrDenied) {
			secret = "denied"
		}
		text = secret
	default:
		text, there = about(job, key)
	}
	if !there {
		text = "none"
	}
	return []byte(text), nil
}

// about returns the information that every job has.
func about(job *process.Job, key string) (string, bool) {
	switch key {
	case "job.id":
		return job.ID(), true
	case "job.task":
		return strconv.Itoa(job.Task()), true
	case "job.tasks":
		return strconv.Itoa(job.Tasks()), true
	case "job.attempt":
		return strconv.Itoa(job.Attempt()), true
	case "job.priority":
		return job.Priority(), true
	case "worker":
		return job.Worker(), true
	case "trace":
		return job.Trace(), true
	}
	return "", false
}

func log(_ context.Context, job *process.Job) ([]byte, error) {
	job.Log(jobhost.LevelInfo, string(job.Input()))
	job.Log(jobhost.LevelDebug, "debugging")
	return nil, nil
}

func fail(_ context.Context, job *process.Job) ([]byte, error) {
	return nil, &jobhost.Failure{
		Err: errors.New(string(job.Input())), Code: "bad_input", Category: jobhost.Validation, Permanent: true,
		Context: map[string]string{"seen": "true"},
	}
}

func retry(_ context.Context, job *process.Job) ([]byte, error) {
	return nil, errors.New(string(job.Input()))
}

func snooze(context.Context, *process.Job) ([]byte, error) {
	return nil, jobhost.Snooze(1500 * time.Millisecond)
}

func panics(context.Context, *process.Job) ([]byte, error) { panic("boom") }

func count(_ context.Context, job *process.Job) ([]byte, error) {
	sum, err := job.KV().Add("count", 1)
	return strconv.AppendInt(nil, sum, 10), err
}

func keep(_ context.Context, job *process.Job) ([]byte, error) {
	value, err := job.KV().Get("k")
	if errors.Is(err, jobhost.ErrNotFound) {
		return nil, job.KV().Set("k", job.Input(), 0)
	}
	return value, err
}

func swap(_ context.Context, job *process.Job) ([]byte, error) {
	version, err := job.KV().Version("k")
	if err != nil {
		return nil, err
	}
	if err := job.KV().CompareAndSet("k", version, job.Input()); err != nil {
		return nil, err
	}
	if err := job.KV().CompareAndSet("k", 12345, nil); !errors.Is(err, jobhost.ErrConflict) {
		return []byte("ok"), err
	}
	return []byte("ok conflict"), nil
}

func draw(_ context.Context, job *process.Job) ([]byte, error) {
	return fmt.Appendf(nil, "%016x", job.Rand().Uint64()), nil
}
