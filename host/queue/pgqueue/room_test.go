package pgqueue_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// full makes the server refuse results as one without room does, until the function that it returns is called.
func full(t *testing.T, s *store) (again func()) {
	t.Helper()
	server := postgres.Shared(t)
	server.Exec(t,
		"CREATE FUNCTION "+s.schema+".full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file: no space left' USING ERRCODE='53100'; END $$",
		"CREATE TRIGGER full_disk BEFORE INSERT ON "+s.schema+".result EXECUTE FUNCTION "+s.schema+".full()")
	return func() { server.Exec(t, "DROP TRIGGER full_disk ON "+s.schema+".result") }
}

// settling hands over the settlement of a task that has succeeded.
func settling(s *store, key record.Key, patient bool) <-chan error {
	ends := make(chan error, 1)
	op := &record.Settle{Key: key, Status: record.Succeeded, Attempt: 1, EndedAt: 2, Result: []byte("done"), Patient: patient}
	s.Commit([]record.Op{op}, func(results []record.OpResult, err error) {
		if err == nil {
			err = results[0].Err
		}
		ends <- err
	})
	return ends
}

// awaitFull waits until a settlement is kept back.
func awaitFull(t *testing.T, s *store, ends <-chan error) {
	t.Helper()
	for s.Full() == nil {
		select {
		case err := <-ends:
			t.Fatalf("it was not kept back: %v", err)
		default:
			postgres.Shared(t).Query(t, "SELECT 1")
		}
	}
	select {
	case <-s.Flowing():
		t.Error("a settlement is kept back, and tasks begin")
	default:
	}
}

// TestSettlementsWaitForRoom: while the server has no room a settlement waits, and its task doesn't run again; other changes
// are refused.
func TestSettlementsWaitForRoom(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	patient, other := submit(t, s, newSpec("patient", "w")), submit(t, s, newSpec("other", "w"))
	again := full(t, s)
	ends := settling(s, patient, true)
	awaitFull(t, s, ends)
	if err := s.Full(); jobhost.CodeOf(err) != jobhost.CodeUnavailable || jobhost.HintOf(err) == "" {
		t.Error(err)
	}
	if err := <-settling(s, other, false); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("one that isn't patient: %v", err)
	}
	if open, err := s.Load(t.Context(), []record.Key{patient}); err != nil || len(open) != 1 {
		t.Errorf("%+v, %v", open, err)
	}
	again()
	if err := <-ends; err != nil {
		t.Fatal(err)
	}
	<-s.Flowing()
	if err := s.Full(); err != nil {
		t.Error(err)
	}
	if data, err := s.Result(t.Context(), patient); err != nil || string(data) != "done" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestGiveUp: a host that stops doesn't wait for room.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	key := submit(t, s, newSpec("a", "w"))
	full(t, s)
	ends := settling(s, key, true)
	awaitFull(t, s, ends)
	s.GiveUp()
	if err := <-ends; jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	<-s.Flowing()
	if err := <-settling(s, key, true); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("one that came later: %v", err)
	}
}

// TestRoomHammer: settlements come from many goroutines while there is no room, and some as there is again: each ends once,
// and then nothing is kept back.
func TestRoomHammer(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	keys := make([]record.Key, 40)
	for i := range keys {
		keys[i] = submit(t, s, newSpec(fmt.Sprint("job ", i), "w"))
	}
	again := full(t, s)
	var all sync.WaitGroup
	settle := func(key record.Key) {
		all.Go(func() {
			if err := <-settling(s, key, true); err != nil {
				t.Error(err)
			}
			<-s.Flowing()
		})
	}
	for _, key := range keys[:30] {
		settle(key)
	}
	for s.Full() == nil {
		postgres.Shared(t).Query(t, "SELECT 1")
	}
	all.Go(again)
	for _, key := range keys[30:] {
		settle(key)
	}
	all.Wait()
	if err := s.Full(); err != nil {
		t.Error(err)
	}
	if open, err := s.Load(t.Context(), keys); err != nil || len(open) > 0 {
		t.Errorf("%d are open, %v", len(open), err)
	}
}
