package main

import (
	"strings"
	"sync"
	"testing"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(*ledger)
		own   counts
		want  delivery
		err   string
	}{
		{"exact", func(*ledger) {}, counts{Succeeded: 3}, delivery{Acknowledged: 3}, ""},
		{"run twice, which is allowed", func(l *ledger) { l.ran(1) }, counts{Succeeded: 3}, delivery{Acknowledged: 3, RunTwice: 1}, ""},
		{"ended twice", func(l *ledger) { l.ended(1) }, counts{Succeeded: 3}, delivery{Acknowledged: 3, EndedTwice: 1}, "1 ended twice"},
		{"never ran", func(l *ledger) { l.jobs[2].runs.Store(0) }, counts{Succeeded: 3}, delivery{Acknowledged: 3, Lost: 1}, "1 are lost"},
		{"never ended", func(l *ledger) { l.jobs[2].ends.Store(0) }, counts{Succeeded: 3}, delivery{Acknowledged: 3, Lost: 1}, "1 are lost"},
		{"not acknowledged", func(l *ledger) { l.jobs[0].acked.Store(0) }, counts{Succeeded: 3}, delivery{Acknowledged: 2}, "2 were acknowledged"},
		{"nobody's job", func(l *ledger) { l.ran(-1); l.ended(3) }, counts{Succeeded: 3}, delivery{Acknowledged: 3, Alien: 2}, "unknown jobs"},
		{"the system says otherwise", func(*ledger) {}, counts{Succeeded: 2, Open: 1}, delivery{Acknowledged: 3}, "2 have succeeded, 1 are open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(3)
			l.begin(0, 3)
			l.submitting([]int{0, 1, 2})
			l.acked([]int{0, 1, 2})
			for n := range 3 {
				l.ran(n)
				l.ended(n)
			}
			tt.spoil(l)
			d, err := l.audit(3, tt.own)
			if d != tt.want {
				t.Errorf("delivery %+v, want %+v", d, tt.want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// TestLedgerHammer ends every job of two phases from several goroutines, each
// twice: each phase is done once, and everything was counted.
func TestLedgerHammer(t *testing.T) {
	t.Parallel()
	const n = 1000
	l := newLedger(2 * n)
	for first := 0; first < 2*n; first += n {
		p := l.begin(first, n)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for i := range n {
					l.submitting([]int{first + i})
					l.ran(first + i)
					l.ended(first + i)
					l.acked([]int{first + i})
				}
			})
		}
		<-p.done
		all.Wait()
	}
	d, err := l.audit(2*n, counts{Succeeded: 2 * n})
	want := delivery{Acknowledged: 2 * n, RunTwice: 2 * n, EndedTwice: 2 * n}
	if d != want || err == nil {
		t.Errorf("delivery %+v, %v, want %+v and an error", d, err, want)
	}
}
