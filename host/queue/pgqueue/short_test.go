package pgqueue_test

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestSettlementsWaitForTheServer: a settlement of an attempt that has been made waits while the server can't write, so that
// the attempt is not made again and again. Submits are refused.
func TestSettlementsWaitForTheServer(t *testing.T) {
	t.Parallel()
	server := postgres.Shared(t)
	s := open(t, server.Schema(t))
	key := submit(t, s, newSpec("job", "w"))
	server.Exec(t, "CREATE FUNCTION "+s.schema+".refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'full' USING ERRCODE='disk_full'; END$$",
		"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON "+s.schema+".task EXECUTE FUNCTION "+s.schema+".refuse()")
	settled := make(chan error, 1)
	s.Commit([]record.Op{&record.Settle{Key: key, Status: record.Succeeded, EndedAt: 2, Attempt: 1, Patient: true}}, func(res []record.OpResult, err error) {
		if err == nil {
			err = res[0].Err
		}
		settled <- err
	})
	if _, err := commit(s, &record.Submit{Job: newSpec("next", "w")}); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("a submit: %v", err)
	}
	if err := s.Full(); jobhost.CodeOf(err) != jobhost.CodeUnavailable {
		t.Errorf("full: %v", err)
	}
	select {
	case <-s.Flowing():
		t.Error("nothing is kept back")
	case err := <-settled:
		t.Errorf("settled: %v", err)
	default:
	}
	server.Exec(t, "DROP TRIGGER refuse ON "+s.schema+".task")
	select {
	case err := <-settled:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("not settled within a minute")
	}
	<-s.Flowing()
	if err := s.Full(); err != nil {
		t.Error(err)
	}
}
