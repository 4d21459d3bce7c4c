package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/hosttest"
	"github.com/jobhost/jobhost/internal/testing/firestorefake"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/firestorestate"
)

// firestore is a fake of Firestore with the states of a host.
type firestore struct {
	*firestorefake.Server
	outage firestorefake.Outage
	store  *firestorestate.Store
}

// newFirestore starts one that is given up after a short time when it is away.
func newFirestore(t testing.TB) *firestore {
	t.Helper()
	f := &firestore{Server: firestorefake.New()}
	address := firestorefake.Serve(t, f.Server, f.outage.Options()...)
	var err error
	f.store, err = firestorestate.Open(t.Context(), firestorestate.Options{
		Project: "test",
		Client: []option.ClientOption{
			option.WithEndpoint(address), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		},
		RetryFor: 3 * time.Second, Idle: 200 * time.Millisecond,
		Backoff: firestorestate.Backoff{First: 10 * time.Millisecond, Max: 50 * time.Millisecond, Attempts: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

func onFirestore(t testing.TB) jobhost.Server {
	t.Helper()
	return hosttest.Open(t, func(c *host.Config) { c.States = newFirestore(t).store })
}

// The suite of all servers, with states in Firestore.
func TestHostOnFirestore(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, onFirestore)
}

// eachStates runs a test with states beside the jobs, and elsewhere.
func eachStates(t *testing.T, test func(t *testing.T, change func(*host.Config))) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		states := config(t)
		test(t, func(c *host.Config) { c.Store, c.States = states.Store, states.States })
	})
	t.Run("firestore", func(t *testing.T) {
		t.Parallel()
		test(t, func(c *host.Config) { c.States = newFirestore(t).store })
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestStatesGoWithTheJob: whatever removes a job takes its states along, and those who
// watch them get an error.
func TestStatesGoWithTheJob(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, h *hosttest.Host, id string){
		"by hand": func(t *testing.T, h *hosttest.Host, id string) {
			if err := h.Delete(t.Context(), id); err != nil {
				t.Error(err)
			}
		},
		"retention": func(*testing.T, *hosttest.Host, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStates(t, func(t *testing.T, change func(*host.Config)) {
				h, _ := stateHost(t, change)
				spec := jobhost.Spec{ID: "imp-1", Worker: "test", Payload: []byte("ingest\n2147483647\n\n")}
				if name == "retention" {
					spec.Retention = time.Second
				}
				submitTo(t, h, spec)
				wait(t, h, "imp-1")
				if got, err := h.States(t.Context(), jobhost.StateQuery{Job: "imp-1", Tag: "ingest"}); err != nil || got.State.Version != 1 {
					t.Fatalf("%+v, %v", got, err)
				}
				ended := make(chan error, 1)
				begun := make(chan struct{})
				go func() {
					for e, err := range h.WatchStates(t.Context(), jobhost.StateQuery{Job: "imp-1"}) {
						if err != nil {
							ended <- err
						} else if e.Sentinel {
							close(begun)
						}
					}
				}()
				<-begun
				remove(t, h, "imp-1")
				if err := <-ended; !errors.Is(err, state.ErrDeleted) {
					t.Errorf("the watch ended with %v", err)
				}
				if _, err := h.States(t.Context(), jobhost.StateQuery{Job: "imp-1"}); jobhost.CodeOf(err) != jobhost.CodeNotFound {
					t.Errorf("after the job was removed: %v", err)
				}
				// The tasks of the next job with the id wait for each other anew.
				spec = jobhost.Spec{ID: "imp-1", Worker: "test", Entry: "barrier", Payload: []byte("ingest\n5")}
				submitTo(t, h, spec)
				eventually(t, "it waits", func() bool {
					job, err := h.Job(t.Context(), "imp-1")
					return err == nil && job.State == jobhost.Running
				})
				got, err := h.States(t.Context(), jobhost.StateQuery{Job: "imp-1", Tag: "ingest"})
				if err != nil || len(got.States) != 0 || got.State.Status != jobhost.StatusNotStarted {
					t.Errorf("the new job: %+v, %v", got, err)
				}
				set, err := h.SetState(t.Context(), "", jobhost.TaskState{JobID: "imp-1", Tag: "ingest", Status: 6}, 0)
				if err != nil || set.Version != 1 {
					t.Errorf("its first state: %+v, %v", set, err)
				}
				var met jobhost.TaskState
				if err := json.Unmarshal([]byte(resultOf(t, h, "imp-1")), &met); err != nil || met.Status != 6 {
					t.Errorf("it met at %+v, %v", met, err)
				}
			})
		})
	}
}

// TestRemovedWhileFirestoreIsAway: the states of a job that is removed meanwhile go when
// it is back, also when the host was started again.
func TestRemovedWhileFirestoreIsAway(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			t.Parallel()
			f := newFirestore(t)
			cfg := config(t)
			cfg.States, cfg.Workers[0].Plugin, cfg.Workers[0].Entry = f.store, guests.States, "set"
			h, stop := run(t, cfg)
			id := submitTo(t, h, jobhost.Spec{Worker: "test", Payload: []byte("a\n1\n\n")})
			wait(t, h, id)
			if f.Document("jobs/"+id) == nil {
				t.Fatal("its states are not there")
			}
			f.outage.Begin()
			if err := h.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if restart {
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				run(t, cfg)
			}
			f.outage.End()
			eventually(t, "the states are gone", func() bool { return f.Document("jobs/"+id) == nil && f.Document("jobs/"+id+"/states/0-a") == nil })
		})
	}
}

// TestLookLeavesNothing: who asks for the states of jobs that report nothing leaves no
// document behind, and after a while no one listens to jobs that have ended.
func TestLookLeavesNothing(t *testing.T) {
	t.Parallel()
	const jobs = 42
	f := newFirestore(t)
	h, _ := stateHost(t, func(c *host.Config) { c.States = f.store })
	for n := range jobs {
		entry, payload := "get", "0\na"
		if n%2 == 0 {
			entry, payload = "set", "a\n1\n\n"
		}
		id := submitTo(t, h, jobhost.Spec{Worker: "test", Entry: entry, Payload: []byte(payload)})
		if got := resultOf(t, h, id); entry == "set" && got != "0" {
			t.Fatalf("it was answered %s", got)
		}
		if _, err := h.States(t.Context(), jobhost.StateQuery{Job: id}); err != nil {
			t.Error(err)
		}
		if there := f.Document("jobs/"+id) != nil; there != (entry == "set") {
			t.Errorf("after %s and a look there is a document: %v", entry, there)
		}
	}
	eventually(t, "no one listens", func() bool { return f.Listening() == 0 })
}

// spoken is an engine whose plugins are Go: run is called for each attempt.
type spoken struct {
	runtime.Engine
	run func(ctx context.Context, at *hostcall.Attempt)
}

func (e *spoken) Load(ctx context.Context, src runtime.Source) (runtime.Plugin, error) {
	p, err := e.Engine.Load(ctx, src)
	return &spokenPlugin{p, e}, err
}

type spokenPlugin struct {
	runtime.Plugin
	engine *spoken
}

func (p *spokenPlugin) Instantiate(ctx context.Context) (runtime.Instance, error) {
	i, err := p.Plugin.Instantiate(ctx)
	return &spokenInstance{i, p.engine}, err
}

type spokenInstance struct {
	runtime.Instance
	engine *spoken
}

func (i *spokenInstance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	i.engine.run(ctx, at)
	return i.Instance.Run(ctx, at)
}

// TestAttemptAfterAnOutage: an attempt that runs while Firestore is away for longer than
// is waited for goes on reporting when it is back.
func TestAttemptAfterAnOutage(t *testing.T) {
	t.Parallel()
	f := newFirestore(t)
	set := func(ctx context.Context, at *hostcall.Attempt, status int32) hostcall.Errno {
		return at.SetState(ctx, "a", status, nil, nil)
	}
	engine := &spoken{}
	h, _ := stateHost(t, func(c *host.Config) {
		c.States, engine.Engine = f.store, c.Engine
		c.Engine = engine
		engine.run = func(ctx context.Context, at *hostcall.Attempt) {
			if e := set(ctx, at, 1); e != hostcall.OK {
				t.Errorf("before: %v", e)
			}
			f.outage.Begin()
			for range 3 { // the last ones after the listener has given up
				if e := set(ctx, at, 2); e == hostcall.OK {
					t.Error("a state was set while Firestore was away")
				}
			}
			f.outage.End()
			if e := set(ctx, at, 3); e != hostcall.OK {
				t.Errorf("after: %v", e)
			}
		}
	})
	id := submitTo(t, h, jobhost.Spec{Worker: "test", Payload: []byte("a\n4\n\n")})
	if got := resultOf(t, h, id); got != "0" {
		t.Errorf("the guest's own: %s", got)
	}
	report, err := h.States(t.Context(), jobhost.StateQuery{Job: id, Tag: "a"})
	if err != nil || report.State.Status != 4 || report.State.Version != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}
