// Command conform uses each part of the SDK, so that the suite of all SDKs can see
// that it reaches the host. Each entry is one case: see package sdktest.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() { jobhost.Handle(upper) }

func main() {}

func upper(job *jobhost.Job) ([]byte, error) {
	out := bytes.Clone(job.Input())
	for i, c := range out {
		if 'a' <= c && c <= 'z' {
			out[i] = c - 'a' + 'A'
		}
	}
	return out, nil
}

//go:wasmexport echo
func echo(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) { return job.Input(), nil })
}

//go:wasmexport info
func info(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
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
	})
}

// about returns the information that every job has.
func about(job *jobhost.Job, key string) (string, bool) {
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

//go:wasmexport log
func log(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		job.Log(jobhost.LevelInfo, string(job.Input()))
		job.Log(jobhost.LevelDebug, "debugging")
		return nil, nil
	})
}

//go:wasmexport fail
func fail(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		return nil, &jobhost.Failure{
			Err: errors.New(string(job.Input())), Code: "bad_input", Category: jobhost.Validation, Permanent: true,
			Context: map[string]string{"seen": "true"},
		}
	})
}

//go:wasmexport retry
func retry(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) { return nil, errors.New(string(job.Input())) })
}

//go:wasmexport snooze
func snooze(n uint32) uint64 {
	return jobhost.Entry(n, func(*jobhost.Job) ([]byte, error) { return nil, jobhost.Snooze(1500 * time.Millisecond) })
}

//go:wasmexport panic
func panics(n uint32) uint64 {
	return jobhost.Entry(n, func(*jobhost.Job) ([]byte, error) { panic("boom") })
}

//go:wasmexport count
func count(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		sum, err := job.KV().Add("count", 1)
		return strconv.AppendInt(nil, sum, 10), err
	})
}

//go:wasmexport keep
func keep(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		value, err := job.KV().Get("k")
		if errors.Is(err, jobhost.ErrNotFound) {
			return nil, job.KV().Set("k", job.Input(), 0)
		}
		return value, err
	})
}

//go:wasmexport swap
func swap(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
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
	})
}

var calls int

//go:wasmexport fresh
func fresh(n uint32) uint64 {
	return jobhost.Entry(n, func(*jobhost.Job) ([]byte, error) {
		calls++
		return strconv.AppendInt(nil, int64(calls), 10), nil
	})
}

//go:wasmexport draw
func draw(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		return fmt.Appendf(nil, "%016x", job.Rand().Uint64()), nil
	})
}
