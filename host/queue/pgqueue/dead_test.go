package pgqueue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// TestStrangeDeaths: a failure with text that the server rejects still makes a dead letter.
func TestStrangeDeaths(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	op := dying(submit(t, s, newSpec("a", "w")), "a\x00\xff", 0)
	op.Failure.Message = "too \x00bad\xc3"
	must(t, s, op)
	want := []string{"a\uFFFD\uFFFD business too \uFFFDbad\uFFFD"}
	if got := rows(t, s, "SELECT code, category, message FROM jobhost.dead"); !slices.Equal(got, want) {
		t.Errorf("letters %q", got)
	}
	if got := rows(t, s, "SELECT hour, category, code, n FROM jobhost.death"); !slices.Equal(got, []string{"0 business a\uFFFD\uFFFD 1"}) {
		t.Errorf("deaths %q", got)
	}
}

// TestDeathKinds: of the codes of a worker in one hour the first are counted, and the others together, also when one
// commit brings many.
func TestDeathKinds(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	const kinds = 200
	die := func(from, to int) {
		var ops []record.Op
		for i := from; i < to; i++ {
			ops = append(ops, &record.Submit{Job: newSpec(fmt.Sprintf("%d-%d-%d", from, to, i), "w")})
		}
		res := must(t, s, ops...)
		for i := range ops {
			ops[i] = dying(res[i].Key, fmt.Sprintf("c%03d", from+i), 0)
		}
		must(t, s, ops...)
	}
	die(0, 150)
	die(140, 300) // ten of which are there
	die(0, 10)
	die(250, 260)
	var want []string
	for i := range kinds {
		n := 1
		if i < 10 || i >= 140 && i < 150 {
			n = 2
		}
		want = append(want, fmt.Sprintf("c%03d %d", i, n))
	}
	want = append([]string{fmt.Sprintf("%s %d", jobhost.OtherCodes, 110)}, want...)
	if got := rows(t, s, "SELECT code, n FROM jobhost.death ORDER BY code"); !slices.Equal(got, want) {
		t.Errorf("deaths %v", got)
	}
}

// TestDeadCount: how many tasks of a worker are dead is known at a death, across commits that come to nothing, other
// operations, and terms.
func TestDeadCount(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	die := func(id string) []string {
		t.Helper()
		return must(t, s, dying(submit(t, s, newSpec(id, "w")), "x", 2))[0].Evicted
	}
	lost := submit(t, s, newSpec("lost", "w"))
	spoiled := &record.Settle{Key: lost, Status: record.Dead, EndedAt: 2, Then: func(record.End) []*record.JobSpec { panic("spoiled") }}
	if _, err := commit(s, spoiled); err == nil {
		t.Fatal("a settlement that panics was made")
	}
	if got := slices.Concat(die("a"), die("b")); len(got) > 0 {
		t.Fatalf("evicted %v too early", got)
	}
	must(t, s, &record.Revive{ID: "a", At: 3}, &record.Cancel{ID: "a", At: 3})
	if got := die("c"); len(got) > 0 {
		t.Fatalf("evicted %v, though one was revived", got)
	}
	if got := die("d"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("evicted %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.schema)
	if got := die("e"); !slices.Equal(got, []string{"c"}) {
		t.Errorf("in the next term evicted %v", got)
	}
	res, err := commit(s, &record.Settle{Key: lost, Token: 9, Status: record.Dead})
	if err != nil || !errors.Is(res[0].Err, record.ErrFenced) {
		t.Errorf("got %v, %v", res, err)
	}
	if got := die("f"); !slices.Equal(got, []string{"d"}) {
		t.Errorf("after a settlement that was refused, evicted %v", got)
	}
}
