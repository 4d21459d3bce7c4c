package pgqueue_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// number returns the number that a query finds.
func number(t *testing.T, s *store, query string, args ...any) int {
	t.Helper()
	n, err := strconv.Atoi(rows(t, s, query, args...)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkSums wants the stored costs of the workers' keys to be those of the keys.
func checkSums(t *testing.T, s *store) {
	t.Helper()
	wrong := number(t, s, `SELECT count(*) FROM jobhost.kv_worker w
		WHERE bytes<>(SELECT coalesce(sum(octet_length(key)+octet_length(value)+$1), 0) FROM jobhost.kv WHERE kv.worker=w.worker)`, record.KVCost("", 0))
	if wrong != 0 {
		t.Fatalf("the costs of %d workers are wrong", wrong)
	}
}

// TestSweep: expired keys of all workers are removed by changes of any, also by those of another term, and more of them
// than one commit removes.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	const workers, each, later = 3, 3000, 1_000_000
	for w := range workers {
		op := &record.ChangeKV{Worker: fmt.Sprint("w", w), At: 1}
		for i := range each {
			op.Changes = append(op.Changes, record.KVChange{Key: fmt.Sprint("k", i), Value: []byte("value"), Expires: 2 + record.Millis(i%7)})
		}
		op.Changes = append(op.Changes, record.KVChange{Key: "later", Expires: later}, record.KVChange{Key: "kept"})
		must(t, s, op)
	}
	touch := func(at record.Millis) {
		t.Helper()
		must(t, s, &record.ChangeKV{Worker: "other", At: at, Changes: []record.KVChange{{Key: "x"}}})
		checkSums(t, s)
	}
	touch(500)
	if n := number(t, s, "SELECT count(*) FROM jobhost.kv"); n != workers*(each+2)+1 {
		t.Fatalf("too early there are %d keys", n)
	}
	touch(10_000)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.schema)
	for range 2 {
		touch(10_001)
	}
	if n := number(t, s, "SELECT count(*) FROM jobhost.kv"); n != workers*2+1 {
		t.Fatalf("after a while there are %d keys", n)
	}
	touch(later + 10_000)
	if n := number(t, s, "SELECT count(*) FROM jobhost.kv"); n != workers+1 {
		t.Fatalf("in the end there are %d keys", n)
	}
}

// TestSums: whatever happens to keys, their cost is what the quota is compared with.
func TestSums(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for round := range 300 {
		at := record.Millis(1 + 200*round)
		ops := make([]record.Op, 1+r.IntN(4))
		for i := range ops {
			ops[i] = randomKeys(r, at+record.Millis(r.IntN(3000)))
		}
		results, err := commit(s, ops...)
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			if jobhost.CodeOf(res.Err) == jobhost.CodeExhausted {
				refused++
			}
		}
		if round%50 == 49 {
			checkSums(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, s.schema)
		}
	}
	if refused == 0 {
		t.Fatal("the quota has refused nothing")
	}
}

// randomKeys changes up to 8 keys of a worker.
func randomKeys(r *rand.Rand, at record.Millis) *record.ChangeKV {
	op := &record.ChangeKV{Worker: fmt.Sprint("w", r.IntN(2)), At: at, Quota: 1500}
	for _, k := range r.Perm(40)[:1+r.IntN(8)] {
		c := record.KVChange{Key: fmt.Sprint("key", k), Kind: record.KVKind(r.IntN(3)), Delta: 1}
		if c.Kind == record.KVSet {
			c.Value = []byte(strings.Repeat("7", r.IntN(15)+1))
			c.Expires = at + record.Millis(r.IntN(4000))
		}
		op.Changes = append(op.Changes, c)
	}
	return op
}

// TestAddToLongNumber: a number may have leading zeros; a value that only begins like a number is none.
func TestAddToLongNumber(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	zeros := strings.Repeat("0", 30)
	values := []string{zeros + "41", "-" + zeros + "43", "1" + zeros, zeros + "x", ""}
	for i, value := range values {
		must(t, s, &record.ChangeKV{Worker: "w", At: 1, Changes: []record.KVChange{{Key: fmt.Sprint(i), Value: []byte(value)}}})
	}
	add := func(kept, want string) {
		t.Helper()
		for i, ok := range []bool{true, true, false, false, false} {
			res, err := commit(s, &record.ChangeKV{Worker: "w", At: 2, Changes: []record.KVChange{{Key: fmt.Sprint(i), Kind: record.KVAdd, Delta: 1}}})
			if err != nil || (res[0].Err == nil) != ok {
				t.Errorf("adding to %q, %s: %v, %v", values[i], kept, res, err)
			}
		}
		if n := number(t, s, "SELECT count(*) FROM jobhost.kv WHERE convert_from(value, 'UTF8')=ANY($1)", strings.Fields(want)); n != 2 {
			t.Errorf("%s, %d numbers are one of %s", kept, n, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.schema)
	add("read from the database", "42 -42")
	add("in memory", "43 -41")
}
