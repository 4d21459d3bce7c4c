// Package hosttest holds the suite that every [jobhost.Server] passes, and opens hosts in
// memory for tests.
package hosttest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jobhost/jobhost"
)

// Run tests the server that open returns: a fresh one for every call, which
// open takes down with t.Cleanup. It must have a worker "test" with room for
// 100 tasks or more, payloads of 64 KiB to 1 MiB, 3 attempts, a first retry after about 1 ms, 2 slots or
// more, what Reload finds must be the same worker with the same plugin, and
// these entries, of which "echo" is what an empty one means or not:
//
//	echo            returns the payload
//	empty           returns nothing
//	fail_retry      fails, with the payload as message; may be tried again
//	fail_permanent  fails, with the payload as message; not again
//	snooze          asks to run after the payload, a duration
//	trap            executes an illegal operation
//	spin            never returns
//	log_echo        logs the payload and returns nothing
//	fiber           publishes what it is sent, but for: "end", at which it returns
//	                its input; "fail", "trap"; and "spin", at which it publishes
//	                "spinning" and does nothing more. At the end of its input it returns.
//
// and a schedule "yearly" that is due at "0 0 1 1 *" in "Europe/Berlin" with the
// payload "happy new year", for the entry "echo". Of fibers there may be 10, and more
// wait; 64 messages may wait for one, and 64 outputs or more are remembered.
//
// Tests that make no sense with a server are left out: see [Without].
func Run(t *testing.T, open func(t testing.TB) jobhost.Server, without ...Without) {
	tests := map[string]func(*setup){
		"submit":           testSubmit,
		"submit again":     testSubmitAgain,
		"submit refused":   testSubmitRefused,
		"submit options":   testSubmitOptions,
		"submit at once":   testSubmitAtOnce,
		"batch":            testBatch,
		"results":          testResults,
		"tasks":            testTasks,
		"failures":         testFailures,
		"timeout":          testTimeout,
		"snooze":           testSnooze,
		"logs":             testLogs,
		"why":              testWhy,
		"not found":        testNotFound,
		"cancel scheduled": testCancelScheduled,
		"cancel running":   testCancelRunning,
		"retry":            testRetry,
		"delete":           testDelete,
		"dead letters":     testDead,
		"change letters":   testChangeDead,
		"retried letter":   testRetriedLetter,
		"single tasks":     testSingleTasks,
		"wait ends":        testWaitEnds,
		"list pages":       testListPages,
		"list filters":     testListFilters,
		"workers":          testWorkers,
		"reload":           testReload,
		"reload at once":   testReloadAtOnce,
		"pause":            testPause,
		"drain":            testDrain,
		"scale":            testScale,
		"keys":             testKeys,
		"keys refused":     testKeysRefused,
		"list keys":        testListKeys,
		"schedules":        testSchedules,
		"run schedule":     testRunSchedule,
		"pause schedule":   testPauseSchedule,
		"reset breaker":    testResetBreaker,
		"deadline":         testDeadline,
		"unique":           testUnique,
		"labels":           testLabels,
		"callback":         testCallback,
		"payloads":         testPayloads,
		"payloads same":    testPayloadsSame,
		"payloads refused": testPayloadsRefused,
		"states":           testStates,
		"states refused":   testStatesRefused,
		"states of a gone": testStatesGo,
		"states of a job":  testStatesOfJob,
		"jobs with states": testStateJobs,
		"runs":             testStateRuns,
		"watch states":     testWatchStates,
		"watch states on":  testWatchStatesAgain,
		"watch a job":      testWatchStatesOfJob,
		"delete states":    testDeleteStates,
		"clean states":     testCleanStates,
		"fibers":           testFibers,
		"fiber ends":       testFiberEnds,
		"fiber errors":     testFiberErrors,
		"fibers refused":   testFibersRefused,
		"fiber full":       testFiberFull,
		"fiber interrupt":  testFiberInterrupt,
		"fiber restarts":   testFiberRestarts,
		"fibers max":       testFibersMax,
		"list fibers":      testListFibers,
		"watch fiber":      testWatchFiber,
		"events":           testEvents,
		"events again":     testEventsAgain,
		"events of a job":  testEventsOfJob,
	}
	runAll(t, tests, open, without)
}

// Without names tests of the suite that make no sense with a server, each with the reason.
type Without map[string]string

func runAll(t *testing.T, tests map[string]func(*setup), open func(t testing.TB) jobhost.Server, without []Without) {
	t.Helper()
	for _, w := range without {
		for name, reason := range w {
			if tests[name] == nil {
				t.Errorf("there is no test %q to be left out", name)
			}
			t.Logf("%s is left out: %s", name, reason)
			delete(tests, name)
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			t.Cleanup(cancel)
			test(&setup{T: t, ctx: ctx, server: open(t)})
		})
	}
}

// setup is what a test works with.
type setup struct {
	*testing.T
	ctx    context.Context
	server jobhost.Server
}

// spec returns a spec for an entry.
func spec(entry, payload string) jobhost.Spec {
	return jobhost.Spec{Worker: "test", Entry: entry, Payload: []byte(payload)}
}

// later returns a spec that doesn't run while the tests do.
func later() jobhost.Spec {
	s := spec("echo", "later")
	s.Delay = time.Hour
	return s
}

func (s *setup) submit(spec jobhost.Spec) string {
	s.Helper()
	receipt, err := s.server.Submit(s.ctx, spec)
	s.check(err)
	return receipt.ID
}

// finish submits a job and waits for its end.
func (s *setup) finish(spec jobhost.Spec) jobhost.Job {
	s.Helper()
	return s.wait(s.submit(spec))
}

func (s *setup) wait(id string) jobhost.Job {
	s.Helper()
	job, err := s.server.Wait(s.ctx, id)
	s.check(err)
	if !job.State.Ended() {
		s.Fatalf("wait returned job %s, which is %s", id, job.State)
	}
	return job
}

func (s *setup) job(id string) jobhost.Job {
	s.Helper()
	job, err := s.server.Job(s.ctx, id)
	s.check(err)
	return job
}

func (s *setup) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v (code %s)", err, jobhost.CodeOf(err))
	}
}

// wantCode checks that err has the code, and a message.
func (s *setup) wantCode(err error, code jobhost.Code) {
	s.Helper()
	if e, ok := errors.AsType[*jobhost.Error](err); !ok || e.Code != code || e.Message == "" {
		s.Errorf("got error %v (code %q), want code %s", err, jobhost.CodeOf(err), code)
	}
}

func (s *setup) wantState(job jobhost.Job, state jobhost.State) {
	s.Helper()
	if job.State != state {
		s.Errorf("job %s is %s, want %s (failures: %+v)", job.ID, job.State, state, job.Failures)
	}
}

func (s *setup) wantResult(id string, task int, want []byte) {
	s.Helper()
	result, err := s.server.Result(s.ctx, id, task)
	s.check(err)
	if result.Task != task || !bytes.Equal(result.Data, want) {
		s.Errorf("result of task %d is %d %q, want %q", task, result.Task, result.Data, want)
	}
}
