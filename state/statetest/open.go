package statetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// plain is the job of tests that need but one.
var plain = state.Job{ID: "job-1"}

// testOpen makes a job, whose number of tasks is its own from then on.
func testOpen(s store) {
	_, err := s.tryFollow(plain, 0)
	wantCode(s.t, "a job that isn't there", err, jobhost.CodeNotFound)
	first := s.follow(plain, 3)
	if first.Tasks() != 3 || first.count() != 0 || first.reason() != nil {
		s.t.Fatalf("a new job has %d tasks and %d states, and its end is %v", first.Tasks(), first.count(), first.reason())
	}
	first.set(of(plain, 2, "a", 1))
	for _, tasks := range []int{0, 1, 3, 5} {
		again := s.follow(plain, tasks)
		if again.Tasks() != 3 {
			s.t.Errorf("opened with %d: it has %d tasks, want its own 3", tasks, again.Tasks())
		}
		wantState(s.t, "what there is when Open returns", again.get(2, "a"), first.get(2, "a"))
		again.close()
	}
	first.close()
	if got := s.follow(plain, 5).Tasks(); got != 3 {
		s.t.Errorf("opened anew it has %d tasks, want 3", got)
	}
}

// testOpenAtOnce opens a job from many sides, which must agree on its tasks.
func testOpenAtOnce(s store) {
	const openers = 8
	sources := make([]source, openers)
	var wg sync.WaitGroup
	for i := range openers {
		wg.Go(func() {
			src, err := s.tryFollow(plain, i+1)
			if err != nil {
				s.t.Error(err)
				return
			}
			if _, err := src.write(of(plain, 0, fmt.Sprint("tag-", i), 1)); err != nil {
				s.t.Error(err)
			}
			sources[i] = src
		})
	}
	wg.Wait()
	if s.t.Failed() {
		return
	}
	last := s.follow(plain, 0)
	for i, src := range sources {
		if src.Tasks() != last.Tasks() {
			s.t.Errorf("opener %d was told of %d tasks, the job has %d", i, src.Tasks(), last.Tasks())
		}
		src.wantVersion(0, fmt.Sprint("tag-", (i+1)%openers), 1)
	}
	if last.count() != openers {
		s.t.Errorf("there are %d states, want %d", last.count(), openers)
	}
}

// testOpenContext ends the context with which a job was opened: it is for opening.
func testOpenContext(s store) {
	ctx, cancel := context.WithCancel(s.t.Context())
	f := newFeed()
	opened, err := s.Open(ctx, plain, 1, f)
	if err != nil {
		s.t.Fatal(err)
	}
	cancel()
	src := source{Source: opened, feed: f, s: s}
	src.set(of(plain, 0, "a", 1))
	s.follow(plain, 0).set(of(plain, 0, "a", 2))
	src.wantVersion(0, "a", 2)
	if f.reason() != nil {
		s.t.Fatalf("the feed has ended: %v", f.reason())
	}
}

// testRuns keeps runs of a job apart, and jobs whose names differ little.
func testRuns(s store) {
	jobs := []state.Job{
		{ID: "a"},
		{ID: "a", Run: "1"},
		{ID: "a", Run: "2"},
		{ID: "A"},
		{ID: "a-1"},
		{ID: "a.1"},
		{ID: "a", Run: "A"},
		{ID: "a", Run: "a"},
	}
	var sources []source
	for i, job := range jobs {
		src := s.follow(job, i+1)
		for n := range i + 1 {
			src.set(of(job, 0, "tag", int32(n+1)))
		}
		sources = append(sources, src)
	}
	for i, src := range sources {
		src.wantVersion(0, "tag", int64(i+1))
		again := s.follow(jobs[i], 0)
		if again.Tasks() != i+1 || again.count() != 1 || again.version(0, "tag") != int64(i+1) || again.get(0, "tag").JobID != jobs[i].ID {
			s.t.Errorf("%v has %d tasks and %+v", jobs[i], again.Tasks(), again.get(0, "tag"))
		}
	}
	if err := s.Delete(s.t.Context(), jobs[0]); err != nil {
		s.t.Fatal(err)
	}
	sources[0].wantEnd(state.ErrDeleted)
	for i, src := range sources[1:] {
		src.set(of(jobs[i+1], 0, "tag", 1))
		if src.reason() != nil {
			s.t.Errorf("the feed of %v has ended with another job: %v", jobs[i+1], src.reason())
		}
	}
}

// testFeeds follows a job several times: each gets everything.
func testFeeds(s store) {
	first := s.follow(plain, 2)
	first.set(of(plain, 0, "a", 1))
	second := s.follow(plain, 2)
	second.set(of(plain, 1, "b", 1))
	third := s.follow(plain, 2)
	first.set(of(plain, 0, "a", 2))
	for i, src := range []source{first, second, third} {
		src.wantVersion(0, "a", 2)
		src.wantVersion(1, "b", 1)
		wantState(s.t, fmt.Sprint("feed ", i), src.get(0, "a"), first.get(0, "a"))
		wantState(s.t, fmt.Sprint("feed ", i), src.get(1, "b"), second.get(1, "b"))
	}
}

// testFeedInOrder has many write: all feeds get all of it, in one order.
func testFeedInOrder(s store) {
	const writers, writes = 6, 20
	sources := []source{s.follow(plain, writers), s.follow(plain, writers), s.follow(plain, writers)}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range writes {
				if _, err := sources[w%3].write(of(plain, w, fmt.Sprint("tag-", i%3), int32(i))); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		for _, src := range sources {
			src.wantVersion(w, "tag-0", 7)
			src.wantVersion(w, "tag-2", 6)
		}
	}
	if s.h.Late {
		return // its listeners may leave out what has been followed
	}
	order := sources[0].news()
	if len(order) != writers*writes {
		s.t.Errorf("the feed was told of %d changes, want %d", len(order), writers*writes)
	}
	for _, src := range sources[1:] {
		if !slices.EqualFunc(src.news(), order, func(a, b state.State) bool {
			return a.TaskID == b.TaskID && a.Tag == b.Tag && a.Version == b.Version
		}) {
			s.t.Error("two feeds were told in different orders")
		}
	}
}

// testClosedSource closes one of two: it gets nothing any more.
func testClosedSource(s store) {
	closed, other := s.follow(plain, 1), s.follow(plain, 1)
	other.set(of(plain, 0, "a", 1))
	closed.wantVersion(0, "a", 1)
	closed.close()
	calls := closed.told()
	other.set(of(plain, 0, "a", 2))
	s.follow(plain, 1).wantVersion(0, "a", 2)
	if err := s.Delete(s.t.Context(), plain); err != nil {
		s.t.Fatal(err)
	}
	other.wantEnd(state.ErrDeleted)
	if err := s.Close(); err != nil {
		s.t.Fatal(err)
	}
	if got := closed.told(); got != calls {
		s.t.Fatalf("the feed was told %d things after it was closed", got-calls)
	}
}

// testClosedUnderWrites closes sources while another writes.
func testClosedUnderWrites(s store) {
	writer := s.follow(plain, 1)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int32(0); !stop.Load(); i++ {
			if _, err := writer.write(of(plain, 0, "a", i)); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	type left struct {
		source
		calls int
	}
	var all []left
	for range 20 {
		src, err := s.tryFollow(plain, 1)
		if err == nil {
			err = src.Close()
		}
		if err != nil {
			s.t.Error(err)
			break
		}
		all = append(all, left{src, src.told()})
	}
	stop.Store(true)
	wg.Wait()
	for _, l := range all {
		if got := l.told(); got != l.calls {
			s.t.Fatalf("the feed was told %d things after it was closed", got-l.calls)
		}
	}
}

// testWriteWhileOpening opens a job again and again while it is written: what was
// acknowledged before is there when Open returns, and what comes after follows.
func testWriteWhileOpening(s store) {
	const writes, writers = 40, 2
	var acked [writers]atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		writer := s.follow(plain, writers)
		wg.Go(func() {
			for i := range writes {
				st, err := writer.write(of(plain, w, "a", int32(i)))
				if err != nil {
					s.t.Error(err)
					return
				}
				acked[w].Store(st.Version)
			}
		})
	}
	var sources []source
	for done := false; !done && !s.t.Failed(); {
		var before [writers]int64
		done = true
		for w := range writers {
			before[w] = acked[w].Load()
			done = done && before[w] == writes
		}
		src := s.follow(plain, writers)
		for w := range writers {
			if got := src.version(w, "a"); got < before[w] {
				s.t.Fatalf("version %d was durable before the job was opened, the feed has %d", before[w], got)
			}
		}
		if len(sources) < 50 {
			sources = append(sources, src)
		} else {
			src.close()
		}
	}
	wg.Wait()
	for _, src := range sources {
		for w := range writers {
			src.wantVersion(w, "a", writes)
		}
	}
}
