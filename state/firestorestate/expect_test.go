package firestorestate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/firestorefake"
	"github.com/jobhost/jobhost/state"
)

// TestLookMakesNothing: a job that is only looked at leaves nothing behind.
func TestLookMakesNothing(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	s := open(t, at(serve(t, fake)))
	for _, tasks := range []int{3, 5, 0} { // the first one's number counts while it is open
		if src, f := follow(t, s, tasks); src.Tasks() != 3 || len(f.puts) != 0 {
			t.Errorf("%d tasks, %d states", src.Tasks(), len(f.puts))
		}
	}
	if made, _ := fake.Commits(); made != 0 || fake.Document("jobs/job-1") != nil {
		t.Errorf("%d commits; the job: %v", made, fake.Document("jobs/job-1"))
	}
	if jobs, err := s.Jobs(t.Context(), "", 10); err != nil || len(jobs) != 0 {
		t.Errorf("listed: %v, %v", jobs, err)
	}
}

// TestFirstStateCounts has several processes open a new job with other numbers of tasks:
// it is made with that of the first state. Who had another one is ended, and has it when
// he opens the job again.
func TestFirstStateCounts(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	address := serve(t, fake)
	first, _ := follow(t, open(t, at(address)), 3)
	same, sameFeed := follow(t, open(t, at(address)), 3)
	store := open(t, at(address))
	other, otherFeed := follow(t, store, 4)
	set(t, first, of("tag", 1))
	if n := fake.Document("jobs/job-1").GetFields()["numTasks"].GetIntegerValue(); n != 3 {
		t.Errorf("it was made with %d tasks", n)
	}
	sameFeed.until(t, "the state", func() bool { return sameFeed.version("tag") == 1 })
	if got := set(t, same, of("tag", 2)); got.Version != 2 {
		t.Errorf("got %+v", got)
	}
	conflict := &jobhost.Error{Code: jobhost.CodeConflict}
	if _, err := other.Set(t.Context(), of("other", 1)); !errors.Is(err, conflict) {
		t.Errorf("set with another number: %v", err)
	}
	otherFeed.until(t, "the end", func() bool { return otherFeed.reason() != nil })
	if !errors.Is(otherFeed.reason(), conflict) {
		t.Errorf("the feed with another number ended with %v", otherFeed.reason())
	}
	if again, f := follow(t, store, 4); again.Tasks() != 3 || f.version("tag") != 2 || set(t, again, of("tag", 3)).Version != 3 {
		t.Errorf("opened again it has %d tasks, and version %d", again.Tasks(), f.version("tag"))
	}
}

// TestManyFirstStates has many tasks begin at once: one makes the job, and none fails.
func TestManyFirstStates(t *testing.T) {
	t.Parallel()
	const tasks = 20
	fake := firestorefake.New()
	address := serve(t, fake)
	var wg sync.WaitGroup
	for process := range 2 {
		s := open(t, at(address))
		for task := range tasks {
			src, _ := follow(t, s, tasks)
			wg.Go(func() {
				st := of(fmt.Sprint("tag-", process), 1)
				st.TaskID = task
				if _, err := src.Set(t.Context(), st); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	// In each process one write tries to make the job, so only one can be in vain.
	if made, aborted := fake.Commits(); made != 2*tasks || aborted > 1 {
		t.Errorf("%d commits for %d states, and %d that were aborted", made, 2*tasks, aborted)
	}
}

// TestDeletedBeforeItWasMade deletes a job while its first state is being written: it is
// not made after that.
func TestDeletedBeforeItWasMade(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"delete", "mark"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			fake := firestorefake.New()
			var begun atomic.Bool
			arrived, release := make(chan struct{}), make(chan struct{})
			s := open(t, at(serve(t, fake, grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				if _, ok := req.(*pb.CommitRequest); ok && begun.CompareAndSwap(false, true) {
					close(arrived)
					<-release
				}
				return handle(ctx, req)
			}))))
			src, f := follow(t, s, 1)
			written := make(chan error)
			go func() {
				_, err := src.Set(t.Context(), of("tag", 1))
				written <- err
			}()
			<-arrived
			remove := s.Delete
			if how == "mark" {
				remove = s.Mark
			}
			if err := remove(t.Context(), job); err != nil {
				t.Error(err)
			}
			if !errors.Is(f.reason(), state.ErrDeleted) {
				t.Errorf("the feed ended with %v", f.reason())
			}
			close(release)
			if err := <-written; !errors.Is(err, state.ErrDeleted) {
				t.Errorf("the write: %v", err)
			}
			if fake.Document("jobs/job-1/states/0-tag") != nil || fake.Document("jobs/job-1") != nil && how == "delete" {
				t.Error("the job was made after it was deleted")
			}
			if err := remove(t.Context(), state.Job{ID: "other"}); jobhost.CodeOf(err) != jobhost.CodeNotFound {
				t.Errorf("another job: %v", err)
			}
		})
	}
}

// held is a stream whose answers wait.
type held struct {
	grpc.ServerStream
	ctx  context.Context
	wait func()
}

func (h held) Context() context.Context { return h.ctx }

func (h held) SendMsg(m any) error {
	h.wait()
	return h.ServerStream.SendMsg(m)
}

// TestLateLookAtNewJob: a listener that is told late that there was no job, when this
// process has made it meanwhile, goes on.
func TestLateLookAtNewJob(t *testing.T) {
	t.Parallel()
	onClocks(t, testLateLook)
}

func testLateLook(t *testing.T, fake *firestorefake.Server) {
	log := newLines()
	var streams atomic.Int32
	cut, seen, release := make(chan struct{}), make(chan struct{}, 2), make(chan struct{})
	opts := at(serve(t, fake, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if info.FullMethod != "/google.firestore.v1.Firestore/Listen" {
			return handle(srv, stream)
		}
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		h := held{stream, ctx, func() {}}
		switch n := streams.Add(1); {
		case n <= 2: // the first start of the listener
			go func() {
				<-cut
				cancel()
			}()
		case n <= 4: // the second: what it tells was so before the job was made
			sent := 0
			h.wait = func() {
				if sent++; sent == 2 { // it has looked by now
					seen <- struct{}{}
					<-release
				}
			}
		}
		return handle(srv, h)
	})))
	opts.Logger = log.logger()
	src, f := follow(t, open(t, opts), 1)
	close(cut)
	for range 2 {
		<-seen
	}
	if got := set(t, src, of("tag", 1)); got.Version != 1 {
		t.Errorf("got %+v", got)
	}
	close(release)
	if got := set(t, src, of("tag", 2)); got.Version != 2 {
		t.Errorf("got %+v", got)
	}
	f.until(t, "both", func() bool { return f.version("tag") == 2 })
	if err := f.reason(); err != nil {
		t.Errorf("the feed has ended: %v", err)
	}
	f.wantRising(t)
}

// TestLateOpenOfNewJob: who found no job, and follows it when this process has made it meanwhile, looks again, and ends
// no feed of it.
func TestLateOpenOfNewJob(t *testing.T) {
	t.Parallel()
	onClocks(t, testLateOpen)
}

func testLateOpen(t *testing.T, fake *firestorefake.Server) {
	var looks atomic.Int32
	looked, release := make(chan struct{}), make(chan struct{})
	s := open(t, at(serve(t, fake, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		h := held{stream, stream.Context(), func() {}}
		if info.FullMethod == "/google.firestore.v1.Firestore/BatchGetDocuments" && looks.Add(1) == 2 { // the second Open
			h.wait = func() {
				close(looked)
				<-release
			}
		}
		return handle(srv, h)
	}))))
	src, f := follow(t, s, 1)
	late := make(chan error)
	go func() {
		other, err := s.Open(t.Context(), job, 1, newFeed())
		if err == nil {
			err = other.Close()
		}
		late <- err
	}()
	<-looked
	set(t, src, of("tag", 1))
	close(release)
	if err := <-late; err != nil {
		t.Errorf("the second Open: %v", err)
	}
	if err := f.reason(); err != nil {
		t.Errorf("the feed has ended: %v", err)
	}
}

// onClocks runs a test on a fake whose clock tells all moments apart, and on one that tells none apart.
func onClocks(t *testing.T, test func(*testing.T, *firestorefake.Server)) {
	t.Run("fine", func(t *testing.T) {
		t.Parallel()
		test(t, firestorefake.New())
	})
	t.Run("coarse", func(t *testing.T) {
		t.Parallel()
		fake := firestorefake.New()
		fake.Freeze()
		test(t, fake)
	})
}
