package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state"
)

// filled returns a board of so many tasks that have reported under so many tags.
func filled(b *testing.B, tasks, tags int) fixture {
	b.Helper()
	f := setup(b, tasks)
	var batch []state.State
	for task := range tasks {
		for tag := range tags {
			s := of(task, fmt.Sprint("tag-", tag), int32(1+(task*7919+tag)%1000))
			s.Version, s.Message, s.Timestamp = 1, "🟢 rows are read", time.Unix(0, int64(task*7919%1000*1000+tag))
			batch = append(batch, s)
		}
	}
	f.Put(batch...)
	return f
}

func BenchmarkGet(b *testing.B) {
	f := filled(b, 1000, 3)
	for name, q := range map[string]state.Query{
		"state": state.NewQuery(state.WithTaskID(500), state.WithTag("tag-1")),
		"tag":   state.NewQuery(state.WithTag("tag-1")),
		"task":  state.NewQuery(state.WithTaskID(500)),
		"job":   state.NewQuery(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Get(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPut changes one state after the other of a board that is not watched.
func BenchmarkPut(b *testing.B) {
	f := filled(b, 1000, 3)
	s := of(0, "tag-1", 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.TaskID, s.Status, s.Version = i%1000, int32(i*7919%1000), int64(i+2)
		f.Put(s)
	}
}

// BenchmarkReplay subscribes to a job of 10,000 states and reads what there is.
func BenchmarkReplay(b *testing.B) {
	f := filled(b, 1000, 10)
	b.ReportAllocs()
	for b.Loop() {
		sub := f.subscribe()
		n := 0
		for e := range sub.Events() {
			if e.Sentinel {
				break
			}
			n++
		}
		if n != 10_000 {
			b.Fatalf("%d states were replayed", n)
		}
		sub.Close()
	}
}

// BenchmarkFanOut passes a change on to 100 subscriptions, which read it.
func BenchmarkFanOut(b *testing.B) {
	f := filled(b, 1000, 3)
	var subs []*state.Subscription
	for range 100 {
		sub := f.subscribe(state.WithTaskID(1))
		for e := range sub.Events() {
			if e.Sentinel {
				break
			}
		}
		subs = append(subs, sub)
	}
	s := of(1, "tag-1", 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Version = int64(i + 2)
		f.Put(s)
		for _, sub := range subs {
			<-sub.Events()
		}
	}
}
