// Command guest uses all that the SDK offers, so that the tests can see it
// arrive at the host. Each entry is one test.
package main

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/go/joblog"
)

var awake int

func init() {
	slog.SetDefault(joblog.New(jobhost.Running))
	jobhost.OnWake(func() { awake++ })
	jobhost.Handle(echo)
}

func main() {}

func echo(job *jobhost.Job) ([]byte, error) { return job.Input(), nil }

//go:wasmexport about
func about(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		city, _ := job.Config("city")
		_, none := job.Config("none")
		team, _ := job.Label("team")
		key, err := job.Secret("key")
		_, denied := job.Secret("other")
		return fmt.Appendf(nil, "%s %d/%d %d %s %s %s|%d %v %s %s %v|%v", job.ID(), job.Task(), job.Tasks(), job.Attempt(),
			job.Priority(), job.Worker(), job.Trace(), len(city), none, team, key, err, denied), nil
	})
}

//go:wasmexport fails
func fails(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		lost := errors.New("connection \"lost\"\x00\xff")
		details := &jobhost.Failure{
			Err: lost, Code: "lost", Category: jobhost.Network, Severity: jobhost.SeverityWarning,
			Context: map[string]string{"peer": "b", "line": "7"},
		}
		switch string(job.Input()) {
		case "plain":
			return []byte("not shown"), lost
		case "permanent":
			return nil, jobhost.Permanent(lost)
		case "wrapped":
			return nil, fmt.Errorf("fetch: %w", jobhost.Permanent(details))
		case "retry":
			return nil, jobhost.Retry(jobhost.Permanent(details))
		case "snooze":
			return nil, fmt.Errorf("not yet: %w", jobhost.Snooze(1500*time.Microsecond))
		}
		var list []int
		return nil, fmt.Errorf("never returned: %d", list[len(job.Input())])
	})
}

//go:wasmexport calls
func calls(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		job.Log(jobhost.LevelDebug, "text")
		slog.Debug("not kept")
		slog.Info("two words", "n", 1, "s", "a b")
		slog.With("a", 1).WithGroup("g").Warn("grouped", "b", 2)
		joblog.New(job).Log(context.Background(), slog.LevelError+1, "louder")
		log.Print("from log")
		job.Progress(1, 2)
		hits := job.Counter("hits", "path", `a"b\c`+"\n", "code", "200")
		err := errors.Join(
			hits.Add(1), hits.Add(2),
			job.Gauge("level").Set(-0.5),
			job.Histogram("size").Observe(1e6),
			job.Emit([]byte("now")),
			job.Emit(nil),
		)
		_, failed := fmt.Fprintf(job, "left %v;", job.Remaining())
		return []byte("end"), errors.Join(err, failed)
	})
}

//go:wasmexport luck
func luck(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		var key [8]byte
		_, err := cryptorand.Read(key[:])
		return fmt.Appendf(nil, "%d %d %d %x", job.Rand().Uint64(), rand.Uint64(), awake, key), err
	})
}

var kept [][]byte

//go:wasmexport garbage
func garbage(n uint32) uint64 {
	return jobhost.Entry(n, func(job *jobhost.Job) ([]byte, error) {
		out := append([]byte(nil), job.Input()...)
		kept = nil
		for range 16 {
			kept = append(kept, make([]byte, 64<<10))
		}
		return out, nil
	})
}
