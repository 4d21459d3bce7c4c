// Package runtimetest is the suite that every engine passes with every ABI it
// supports: whatever a guest does ends in the same outcome.
package runtimetest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// Subject is an engine with an ABI, under test. Its guest has a behaviour for
// each way an attempt can go: see guests.Outcomes.
type Subject struct {
	// Open loads the guest, with the other settings of src; the plugin is
	// closed at the end of t.
	Open Opener
	// Call makes an attempt at a behaviour; nil = behaviours are entries.
	Call func(behaviour, input string) *hostcall.Attempt
	// Lacks are behaviours that the ABI can't express, and cases of the suite
	// that make no sense for it.
	Lacks []string
	// Once is true if an instance that isn't reset can't run another job.
	Once bool
	// FailCode is the code of failures that the guest declares without one.
	FailCode string
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	if s.Call == nil {
		s.Call = Attempt
	}
	for name, test := range map[string]func(*testing.T, Subject){
		"outcomes": testOutcomes, "limits": testLimits, "fuel": testFuel, "stop": testStop,
		"isolation": testIsolation, "reuse": testReuse, "hammer": testHammer,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, s) })
	}
}

// RunCalls runs the part of the suite that is about the calls of the native ABI.
func RunCalls(t *testing.T, s Subject) { testCalls(t, s) }

// can reports whether the guest has a behaviour.
func (s *Subject) can(behaviour string) bool { return !slices.Contains(s.Lacks, behaviour) }

// Attempt returns an attempt at an entry with the usual limits.
func Attempt(entry, input string) *hostcall.Attempt {
	limits := runtime.DefaultLimits()
	return &hostcall.Attempt{
		Job: "job-1", Worker: "outcomes", Task: 2, Tasks: 3, Number: 4,
		Priority: jobhost.High,
		Labels:   map[string]string{"team": "blue"},
		Trace:    "trace-1",
		Config:   map[string]string{"greeting": "hello"},
		Secrets:  map[string]string{"key": "s3cret"},
		Entry:    entry,
		Input:    []byte(input),
		Deadline: time.Now().Add(time.Minute),
		Limits: hostcall.Limits{
			OutputBytes: limits.OutputBytes,
			LogBytes:    limits.LogBytes,
			LineBytes:   limits.LineBytes,
			LogLevel:    slog.LevelInfo,

			OpenRequests: limits.OpenRequests, Requests: limits.Requests, RequestBytes: limits.RequestBytes,
		},
		Services: &Services{},
	}
}

// Instance makes an instance that is closed at the end of t.
func Instance(t testing.TB, p runtime.Plugin) runtime.Instance {
	t.Helper()
	i, err := p.Instantiate(t.Context())
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	t.Cleanup(func() {
		if err := i.Close(context.Background()); err != nil {
			t.Errorf("close the instance: %v", err)
		}
	})
	return i
}

// Services records what a guest asked for.
type Services struct {
	// Emitted is called with every message, on the guest's goroutine; may be nil.
	Emitted func(data string)

	mu       sync.Mutex // protects the rest
	emits    []string
	progress [][2]int64
	metrics  []string
	observed []float64
}

// Emit implements [hostcall.Services].
func (s *Services) Emit(_ *hostcall.Attempt, data []byte) {
	s.mu.Lock()
	s.emits = append(s.emits, string(data))
	s.mu.Unlock()
	if s.Emitted != nil {
		s.Emitted(string(data))
	}
}

// Progress implements [hostcall.Services].
func (s *Services) Progress(_ *hostcall.Attempt, done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = append(s.progress, [2]int64{done, total})
}

// Metric implements [hostcall.Services]; ids count from 1.
func (s *Services) Metric(_ *hostcall.Attempt, _ hostcall.MetricKind, name string) (int32, hostcall.Errno) {
	m, err := hostcall.ParseMetric(name)
	if err != nil {
		return 0, hostcall.ErrInvalid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics = append(s.metrics, m.String())
	return int32(len(s.metrics)), hostcall.OK
}

// Observe implements [hostcall.Services].
func (s *Services) Observe(_ *hostcall.Attempt, id int32, value float64) hostcall.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || int(id) > len(s.metrics) {
		return hostcall.ErrNotFound
	}
	s.observed = append(s.observed, value)
	return hostcall.OK
}
