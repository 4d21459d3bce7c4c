// Package statetest is the suite that every [state.Store] passes. A store's own
// test is a harness: how to open an empty one, how to open again what another
// left behind, and what the backend cannot do.
package statetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// Harness is how the suite gets at stores.
type Harness struct {
	// Open returns an empty store that is closed when the test ends. The suite may
	// have closed it before: closing twice must be fine.
	Open func(t testing.TB) state.Store
	// Reopen closes the store and returns one with what it left behind, closed when
	// the test ends. Nil = the stores leave nothing behind.
	Reopen func(t testing.TB, s state.Store) state.Store
	// Late says that a feed is told by a remote listener what others do: later than
	// their call returns, not in one order for all, and without changes that others
	// have followed. What a feed's own source does it is told in time all the same.
	Late bool
	// Skip names tests of the suite that the backend cannot pass, with the reason.
	Skip map[string]string
}

// tests are the parts of the suite, by the names of [Harness.Skip].
var tests = []struct {
	name string
	run  func(s store)
}{
	{"open", testOpen},
	{"open at once", testOpenAtOnce},
	{"context of opening", testOpenContext},
	{"runs", testRuns},
	{"feeds", testFeeds},
	{"feed in order", testFeedInOrder},
	{"closed source", testClosedSource},
	{"closed source under writes", testClosedUnderWrites},
	{"write while opening", testWriteWhileOpening},
	{"versions", testVersions},
	{"versions at once", testVersionsAtOnce},
	{"event ids", testEventIDs},
	{"event ids at once", testEventIDsAtOnce},
	{"times", testTimes},
	{"texts", testTexts},
	{"payloads", testPayloads},
	{"payload numbers", testPayloadNumbers},
	{"payload shapes", testPayloadShapes},
	{"large payload", testLargePayload},
	{"many tasks", testManyTasks},
	{"mark", testMark},
	{"delete", testDelete},
	{"delete all", testDeleteAll},
	{"look", testLook},
	{"missing", testMissing},
	{"jobs", testJobs},
	{"pages of jobs", testJobPages},
	{"closed", testClosed},
	{"reopen", testReopen},
	{"replay and live", testReplayAndLive},
	{"resume", testResume},
	{"synchronize", testSynchronize},
	{"clean", testClean},
	{"boards", testBoards},
	{"hammer", testHammer},
}

// Run runs the suite. Its subtests run in parallel with each other.
func Run(t *testing.T, h Harness) {
	known := map[string]bool{}
	for _, c := range tests {
		known[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if reason := h.Skip[c.name]; reason != "" {
				t.Skip(reason)
			}
			c.run(store{Store: h.Open(t), t: t, h: h})
		})
	}
	for name := range h.Skip {
		if !known[name] {
			t.Errorf("there is no test %q to skip", name)
		}
	}
}

// RunReopen runs the part of the suite that opens a store again, for stores that become others by that.
func RunReopen(t *testing.T, h Harness) { testReopen(store{Store: h.Open(t), t: t, h: h}) }

// store is a [state.Store] with the verbs of a test, which fail it on errors.
type store struct {
	state.Store
	t testing.TB
	h Harness
}

// source is a job that is followed, with what its feed got.
type source struct {
	state.Source
	*feed
	s store
}

// follow opens a job.
func (s store) follow(job state.Job, tasks int) source {
	s.t.Helper()
	src, err := s.tryFollow(job, tasks)
	if err != nil {
		s.t.Fatalf("open %s: %v", job.Key(), err)
	}
	return src
}

func (s store) tryFollow(job state.Job, tasks int) (source, error) {
	f := newFeed()
	src, err := s.Open(s.t.Context(), job, tasks, f)
	return source{Source: src, feed: f, s: s}, err
}

// close ends following.
func (src source) close() {
	src.s.t.Helper()
	if err := src.Close(); err != nil {
		src.s.t.Fatalf("close: %v", err)
	}
}

// set writes a state, which the feed must have been told by then.
func (src source) set(st state.State) state.State {
	src.s.t.Helper()
	got, err := src.write(st)
	if err != nil {
		src.s.t.Fatalf("set %d/%s: %v", st.TaskID, st.Tag, err)
	}
	return got
}

// write is set for other goroutines than that of the test.
func (src source) write(st state.State) (state.State, error) {
	st.SchemaVersion = max(st.SchemaVersion, 1)
	got, err := src.Set(src.s.t.Context(), st)
	if err != nil {
		return got, err
	}
	if told := src.version(st.TaskID, st.Tag); told < got.Version {
		return got, fmt.Errorf("version %d of %d/%s was returned before its feed was told: it has %d", got.Version, st.TaskID, st.Tag, told)
	}
	return got, nil
}

// infos lists the jobs by key.
func (s store) infos() map[string]state.Info {
	s.t.Helper()
	list, err := s.Jobs(s.t.Context(), "", 10_000)
	if err != nil {
		s.t.Fatalf("jobs: %v", err)
	}
	all := map[string]state.Info{}
	for _, info := range list {
		all[info.Key()] = info
	}
	return all
}

// of makes a state of a job that is to be written.
func of(job state.Job, task int, tag string, status int32) state.State {
	return state.State{JobID: job.ID, TaskID: task, Tag: tag, Status: status, SchemaVersion: 1}
}

// wantState fails the test unless a state is what it should be.
func wantState(t testing.TB, what string, got, want state.State) {
	t.Helper()
	if diff := difference(got, want); diff != "" {
		t.Fatalf("%s: %s", what, diff)
	}
}

// difference says in what states differ: payloads as JSON, times as moments.
func difference(got, want state.State) string {
	var diff []string
	if !got.Timestamp.Equal(want.Timestamp) {
		diff = append(diff, fmt.Sprintf("timestamp %v, want %v", got.Timestamp, want.Timestamp))
	}
	if !sameJSON(got.Payload, want.Payload) {
		diff = append(diff, fmt.Sprintf("payload %.200q, want %.200q", got.Payload, want.Payload))
	}
	got.Timestamp, got.Payload, want.Payload = want.Timestamp, nil, nil
	if !reflect.DeepEqual(got, want) {
		diff = append(diff, fmt.Sprintf("got %+v, want %+v", got, want))
	}
	return strings.Join(diff, "; ")
}

// sameJSON reports whether two texts have the same value, numbers of any size included.
func sameJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errA := decoded(a)
	y, errB := decoded(b)
	return errA == nil && errB == nil && reflect.DeepEqual(x, y)
}

func decoded(data []byte) (any, error) {
	var v any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	err := d.Decode(&v)
	return exact(v), err
}

// exact replaces numbers by what is the same for the same number.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return r.String()
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// wantCode fails the test unless an error has a code.
func wantCode(t testing.TB, what string, err error, code jobhost.Code) {
	t.Helper()
	if jobhost.CodeOf(err) != code {
		t.Fatalf("%s: got %v, want the code %s", what, err, code)
	}
}

// wantErr fails the test unless an error is another.
func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want: %v", what, err, want)
	}
}
