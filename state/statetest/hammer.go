package statetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// testHammer has writers, subscribers, waiters and those who delete use several
// jobs at once, through shared boards and boards of their own. The race detector
// says whether that is right, and so does what is there in the end.
func testHammer(s store) {
	rounds := 60
	if raceEnabled {
		rounds = 25
	}
	h := &hammer{s: s, boards: state.NewBoards(s, state.Observer{})}
	for i := range 3 {
		h.jobs = append(h.jobs, state.Job{ID: fmt.Sprint("job-", i), Run: fmt.Sprint(i)})
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for g := range 12 {
		random := rand.New(rand.NewPCG(1, uint64(g)))
		wg.Go(func() {
			for range rounds {
				if err := h.use(ctx, random, g); err != nil && !allowed(err) {
					s.t.Errorf("goroutine %d: %v", g, err)
					return
				}
			}
		})
	}
	wg.Wait()
	h.boards.Close()
	h.compare()
}

type hammer struct {
	s      store
	boards *state.Boards
	jobs   []state.Job
}

const hammerTasks = 4

// allowed are the errors that come of others who delete, and of hurry.
func allowed(err error) bool {
	return errors.Is(err, state.ErrDeleted) || errors.Is(err, state.ErrSlow) || errors.Is(err, errLeft) ||
		jobhost.CodeOf(err) == jobhost.CodeConflict || jobhost.CodeOf(err) == jobhost.CodeNotFound
}

var errLeft = errors.New("left")

// use opens a job in one way or the other and does something with it.
func (h *hammer) use(ctx context.Context, random *rand.Rand, g int) error {
	job := h.jobs[random.IntN(len(h.jobs))]
	switch random.IntN(20) {
	case 0:
		return h.s.Delete(ctx, job)
	case 1:
		if err := h.s.Mark(ctx, job); err != nil {
			return err
		}
		return h.s.Delete(ctx, job)
	case 2:
		_, err := h.s.Jobs(ctx, "", 2)
		return err
	}
	var b *state.Board
	var err error
	if g%3 == 0 {
		if b, err = state.NewBoard(ctx, h.s, job, hammerTasks, state.Observer{}); err != nil {
			return err
		}
		defer func() { _ = b.Close() }()
	} else {
		var leave func()
		if b, leave, err = h.boards.Acquire(ctx, job, hammerTasks); err != nil {
			return err
		}
		defer leave()
	}
	return h.work(ctx, b, random)
}

// work writes, reads, watches or waits.
func (h *hammer) work(ctx context.Context, b *state.Board, random *rand.Rand) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errLeft)
	tag := fmt.Sprint("tag-", random.IntN(3))
	switch random.IntN(4) {
	case 0:
		w := newWatcher(false)
		seen := 0
		task := random.IntN(hammerTasks)
		if _, err := b.Set(ctx, of(b.Job(), task, tag, 1)); err != nil {
			return err
		}
		return w.watch(ctx, b, state.NewQuery(state.WithTag(tag)), func() bool { seen++; return seen > 2 || w.live })
	case 1:
		cancel(errLeft)
		states, err := b.Synchronize(ctx, tag, 5)
		if err == nil && len(states) != hammerTasks {
			return fmt.Errorf("%d states of %d tasks", len(states), hammerTasks)
		}
		return err
	}
	for range 5 {
		task := random.IntN(hammerTasks)
		set, err := b.Set(ctx, of(b.Job(), task, tag, random.Int32N(10)))
		if err != nil {
			return err
		}
		got, err := b.Get(state.NewQuery(state.WithTaskID(task), state.WithTag(tag)))
		if err != nil {
			return err
		}
		if got.Version < set.Version {
			return fmt.Errorf("version %d was set, the board has %d", set.Version, got.Version)
		}
	}
	return nil
}

// compare sees that two who open a job find the same, with versions that the
// store goes on to count.
func (h *hammer) compare() {
	for _, job := range h.jobs {
		one, other := h.s.follow(job, hammerTasks), h.s.follow(job, hammerTasks)
		for k, st := range one.all() {
			wantState(h.s.t, "opened twice", other.get(k.task, k.tag), st)
		}
		if info, ok := h.s.infos()[job.Key()]; ok && (info.States != one.count() || one.count() != other.count()) {
			h.s.t.Errorf("%v is listed with %d states and has %d and %d", job, info.States, one.count(), other.count())
		}
		for task := range hammerTasks {
			before := one.version(task, "tag-0")
			if got := one.set(of(job, task, "tag-0", 1)); got.Version != before+1 {
				h.s.t.Errorf("version %d comes after %d", got.Version, before)
			}
		}
	}
}
