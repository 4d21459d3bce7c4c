package pgqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// commit commits a batch and returns what became of it.
func commit(s *store, ops ...record.Op) (res []record.OpResult, err error) {
	done := make(chan struct{})
	s.Commit(ops, func(r []record.OpResult, e error) {
		res, err = r, e
		close(done)
	})
	<-done
	return res, err
}

// must commits a batch of which nothing is refused.
func must(t *testing.T, s *store, ops ...record.Op) []record.OpResult {
	t.Helper()
	res, err := commit(s, ops...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res {
		if res[i].Err != nil {
			t.Fatalf("operation %d, %T: %v", i, ops[i], res[i].Err)
		}
	}
	return res
}

// submit adds a job and returns its key.
func submit(t *testing.T, s *store, job *record.JobSpec) record.Key {
	t.Helper()
	return must(t, s, &record.Submit{Job: job})[0].Key
}

// newSpec returns a job; mod may change it.
func newSpec(id, worker string, mod ...func(*record.JobSpec)) *record.JobSpec {
	job := &record.JobSpec{ID: id, Worker: worker, Tasks: 1, Priority: jobhost.Normal, MaxAttempts: 3, CreatedAt: 1, ReadyAt: 1}
	for _, m := range mod {
		m(job)
	}
	return job
}

// dying is the settlement of a task that dies of a code.
func dying(key record.Key, code string, most int) *record.Settle {
	return &record.Settle{
		Key: key, Status: record.Dead, EndedAt: 2, Attempt: 1, ExpiresAt: 100, MaxDead: most,
		Failure: &jobhost.Failure{Code: code, Category: jobhost.CategoryBusiness, Message: "too bad"},
	}
}

// rows returns what a query selects, a row as one text.
func rows(t *testing.T, s *store, query string, args ...any) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	found, err := conn.Query(t.Context(), strings.ReplaceAll(query, "jobhost.", s.schema+"."), args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return strings.TrimSpace(fmt.Sprintln(values...)), err
	})
	if err != nil {
		t.Fatal(query, err)
	}
	return list
}
