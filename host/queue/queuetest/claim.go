package queuetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

func testClaimOrder(t *testing.T, h Harness) {
	s := open(t, h)
	late := s.submit(spec("late", "w", readyAt(epoch+100)))
	first := s.submit(spec("first", "w", tasks(2)))
	second := s.submit(spec("second", "w", func(s *record.JobSpec) { s.Priority = jobhost.Critical }))
	early := s.submit(spec("early", "w", readyAt(epoch-1)))
	s.submit(spec("foreign", "other"))
	s.succeed(s.submit(spec("ended", "w")))

	want := []record.Claimed{
		{Place: record.Place{ReadyAt: epoch - 1, Key: early}, Level: 2},
		{Place: record.Place{ReadyAt: epoch, Key: first}, Level: 2},
		{Place: record.Place{ReadyAt: epoch, Key: first + 1}, Level: 2, Index: 1},
		{Place: record.Place{ReadyAt: epoch, Key: second}, Level: 0},
		{Place: record.Place{ReadyAt: epoch + 100, Key: late}, Level: 2},
	}
	wantSame(t, "claims", s.claim("w", record.Place{}, 100), want)
	for i := range want {
		wantSame(t, fmt.Sprintf("claims after %d", i), s.claim("w", want[i].Place, 2), want[i+1:min(i+3, len(want))])
	}
	s.must(settlement(early, record.Open))
	retried := record.Claimed{Place: record.Place{ReadyAt: epoch + 1000, Key: early}, Level: 2, Attempt: 1, Token: 1}
	wantSame(t, "claims after a retry", s.claim("w", want[4].Place, 9), []record.Claimed{retried})
	if got := s.claim("unknown", record.Place{}, 9); len(got) != 0 {
		t.Fatalf("an unknown worker has tasks %+v", got)
	}
	if got := s.claim("w", record.Place{}, 0); len(got) != 0 {
		t.Fatalf("limit 0 gives %d tasks", len(got))
	}
}

func testClaimPages(t *testing.T, h Harness) {
	s := open(t, h)
	var ops []record.Op
	for i := range 40 {
		ops = append(ops, &record.Submit{Job: spec(fmt.Sprint(i), "w", tasks(1+i%4), readyAt(epoch+record.Millis(i*7%5)))})
	}
	s.do(ops...)
	all := s.claim("w", record.Place{}, 1000)
	if len(all) != 100 {
		t.Fatalf("claimed %d tasks, want 100", len(all))
	}
	for _, limit := range []int{1, 3, 7, 99, 100, 101} {
		var paged []record.Claimed
		after := record.Place{}
		for {
			page := s.claim("w", after, limit)
			paged = append(paged, page...)
			if len(page) < limit {
				break
			}
			after = page[len(page)-1].Place
		}
		wantSame(t, fmt.Sprintf("claims in pages of %d", limit), paged, all)
	}
}

func testLoad(t *testing.T, h Harness) {
	s := open(t, h)
	key := s.submit(full("a", "w"))
	other := s.submit(spec("b", "w"))
	ended := s.submit(spec("c", "w"))
	s.succeed(ended)
	s.must(settlement(key+1, record.Open))

	a, b := full("a", "w"), spec("b", "w")
	a.Key, b.Key = key, other
	wantSame(t, "bodies", s.load(other, key+1, ended, 999_999, key), []record.Body{
		{Key: other, Job: b},
		{Key: key + 1, Index: 1, Token: 1, Attempt: 1, Job: a},
		{Key: key, Job: a},
	})
	if got := s.load(); len(got) != 0 {
		t.Fatalf("loaded %d bodies of no keys", len(got))
	}
	keys := slices.Repeat([]record.Key{key}, 1)
	for i := range 200 {
		keys = append(keys, s.submit(spec(fmt.Sprint("n", i), "w")))
	}
	if got := s.load(keys...); len(got) != 201 || got[200].Job.ID != "n199" {
		t.Fatalf("loaded %d bodies of 201", len(got))
	}
}
