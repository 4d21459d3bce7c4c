package firestorestate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/testing/firestorefake"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/firestorestate"
)

// TestContention has several processes write the same state: transactions conflict,
// and each version is given once.
func TestContention(t *testing.T) {
	t.Parallel()
	const processes, writes = 3, 20
	fake := firestorefake.New()
	var meet sync.WaitGroup // the first commits wait for each other
	var commits atomic.Int32
	var ready atomic.Bool
	meet.Add(processes)
	address := serve(t, fake, grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if _, ok := req.(*pb.CommitRequest); ok && ready.Load() && commits.Add(1) <= processes {
			meet.Done()
			meet.Wait()
		}
		return handle(ctx, req)
	}))
	var mu sync.Mutex // protects versions
	var versions []int
	var sources []state.Source
	var feeds []*feed
	for range processes {
		src, f := follow(t, open(t, at(address)), 1)
		sources, feeds = append(sources, src), append(feeds, f)
	}
	ready.Store(true)
	var wg sync.WaitGroup
	for _, src := range sources {
		wg.Go(func() {
			for i := range writes {
				got, err := src.Set(t.Context(), of("tag", int32(i)))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				versions = append(versions, int(got.Version))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(versions)
	for i, v := range versions {
		if v != i+1 {
			t.Fatalf("the versions given are %v", versions)
		}
	}
	for _, f := range feeds {
		f.until(t, "the last version", func() bool { return f.version("tag") == processes*writes })
		f.wantRising(t)
	}
	if _, aborted := fake.Commits(); aborted < processes-1 {
		t.Errorf("%d transactions were aborted: this shows nothing", aborted)
	}
}

// TestDocuments looks at what is stored: it is part of the contract with others who
// read the database.
func TestDocuments(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	s := open(t, at(serve(t, fake)))
	src, _ := follow(t, s, 3)
	st := of("ingest", 7)
	st.TaskID, st.Message, st.EventID, st.SchemaVersion = 2, "🟢 on", "e1", 4
	st.Payload = []byte(`{"n":9007199254740993,"f":0.5,"list":[1,"two",null,true],"sub":{"a.b":1}}`)
	set(t, src, st)
	const want = `eventID:"e1" message:"🟢 on" payload:{"f":0.5,"list":[1,"two",null,true],"n":9007199254740993,"sub":{"a.b":1}} ` +
		`schemaVersion:4 status:7 tag:"ingest" taskID:2 timestamp:time version:1`
	if got := fields(fake.Document("jobs/job-1/states/2-ingest")); got != want {
		t.Errorf("the state is\n%s, want\n%s", got, want)
	}
	st.EventID, st.Payload = "e2", []byte(`{"sub":{"c":[[1]]}}`)
	set(t, src, st)
	if got := fields(fake.Document("jobs/job-1/states/2-ingest")); !strings.Contains(got, `payload:"{\"sub\":{\"c\":[[1]]}}"`) {
		t.Errorf("what no map can hold is kept as %s", got)
	}
	st.EventID, st.Payload = "e3", nil
	if got := set(t, src, st); got.Payload != nil {
		t.Errorf("the payload that was taken away is %s", got.Payload)
	}
	if got := fields(fake.Document("jobs/job-1/states/2-ingest")); !strings.Contains(got, "payload:null") || !strings.Contains(got, "version:3") {
		t.Errorf("without a payload it is %s", got)
	}
	if got := fields(fake.Document("jobs/job-1")); got != "createdAt:time numTasks:3" {
		t.Errorf("the job is %s", got)
	}
	if err := s.Mark(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if got := fields(fake.Document("jobs/job-1")); got != "createdAt:time deleted:time numTasks:3" {
		t.Errorf("marked, the job is %s", got)
	}
}

// fields writes the fields of a document by name.
func fields(d *pb.Document) string {
	var list []string
	for name, v := range d.GetFields() {
		list = append(list, name+":"+valueText(v))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func valueText(v *pb.Value) string {
	switch x := v.GetValueType().(type) {
	case *pb.Value_StringValue:
		return fmt.Sprintf("%q", x.StringValue)
	case *pb.Value_IntegerValue:
		return fmt.Sprint(x.IntegerValue)
	case *pb.Value_DoubleValue:
		return fmt.Sprint(x.DoubleValue)
	case *pb.Value_BooleanValue:
		return fmt.Sprint(x.BooleanValue)
	case *pb.Value_TimestampValue:
		return "time"
	case *pb.Value_ArrayValue:
		var list []string
		for _, e := range x.ArrayValue.GetValues() {
			list = append(list, valueText(e))
		}
		return "[" + strings.Join(list, ",") + "]"
	case *pb.Value_MapValue:
		var list []string
		for name, e := range x.MapValue.GetFields() {
			list = append(list, fmt.Sprintf("%q:%s", name, valueText(e)))
		}
		slices.Sort(list)
		return "{" + strings.Join(list, ",") + "}"
	}
	return "null"
}

// TestDeletedElsewhere marks and deletes jobs in another process.
func TestDeletedElsewhere(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*firestorestate.Store, context.Context, state.Job) error{
		"marked": (*firestorestate.Store).Mark, "deleted": (*firestorestate.Store).Delete,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, firestorefake.New())
			src, f := follow(t, open(t, at(address)), 1)
			set(t, src, of("tag", 1))
			if err := act(open(t, at(address)), t.Context(), job); err != nil {
				t.Fatal(err)
			}
			f.until(t, "the end", func() bool { return f.reason() != nil })
			_, err := src.Set(t.Context(), of("tag", 2))
			if !errors.Is(f.reason(), state.ErrDeleted) || !errors.Is(err, state.ErrDeleted) {
				t.Errorf("the end is %v, a write fails with %v", f.reason(), err)
			}
		})
	}
}

// TestRemade deletes a job and makes it again while the line of a listener is cut:
// it must not take the new states for the old ones.
func TestRemade(t *testing.T) {
	t.Parallel()
	address := serve(t, firestorefake.New())
	p := newProxy(t, address)
	src, f := follow(t, open(t, at(p.address())), 1)
	for i := range 3 {
		set(t, src, of("tag", int32(i)))
	}
	p.stall(true)
	p.cut()
	other := open(t, at(address))
	if err := other.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	anew, _ := follow(t, other, 2)
	for i := range 5 {
		set(t, anew, of("tag", int32(i)))
	}
	p.stall(false)
	f.until(t, "the end", func() bool { return f.reason() != nil })
	if !errors.Is(f.reason(), state.ErrDeleted) || f.version("tag") != 3 {
		t.Errorf("the end is %v, version %d", f.reason(), f.version("tag"))
	}
}

// TestDeleteInBatches deletes more states than go into one transaction, with a crash
// in between.
func TestDeleteInBatches(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	var deletes atomic.Int32
	var crash atomic.Bool
	s := open(t, at(serve(t, fake, grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if c, ok := req.(*pb.CommitRequest); ok && len(c.GetWrites()) > 1 && crash.Load() && deletes.Add(1) == 2 {
				return nil, status.Error(codes.PermissionDenied, "no")
			}
			return handle(ctx, req)
		}))))
	const states = 120
	src, _ := follow(t, s, 1)
	var wg sync.WaitGroup
	for w := range 10 {
		wg.Go(func() {
			for i := range states / 10 {
				if _, err := src.Set(t.Context(), of(fmt.Sprint("tag-", w, "-", i), 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	crash.Store(true)
	err := s.Delete(t.Context(), job)
	if jobhost.CodeOf(err) != jobhost.CodeInternal || jobhost.HintOf(err) == "" {
		t.Fatalf("delete: %v", err)
	}
	if _, err := s.Open(t.Context(), job, 1, newFeed()); jobhost.CodeOf(err) != jobhost.CodeConflict {
		t.Errorf("half deleted, it opens with %v", err)
	}
	jobs, err := s.Jobs(t.Context(), "", 10)
	if err != nil || len(jobs) != 1 || jobs[0].States != states-100 {
		t.Errorf("half deleted, it is listed as %+v, %v", jobs, err)
	}
	if err := s.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if jobs, err := s.Jobs(t.Context(), "", 10); err != nil || len(jobs) != 0 || fake.Document("jobs/job-1") != nil {
		t.Errorf("there are still %v, %v", jobs, err)
	}
}

// TestManyJobs follows more jobs than a connection has streams for.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	s := open(t, at(serve(t, firestorefake.New(), grpc.MaxConcurrentStreams(100))))
	var wg sync.WaitGroup
	for i := range 130 {
		wg.Go(func() {
			one := state.Job{ID: fmt.Sprint("job-", i)}
			src, err := s.Open(t.Context(), one, 1, newFeed())
			if err == nil {
				_, err = src.Set(t.Context(), of("tag", 1))
			}
			if err != nil {
				t.Errorf("job %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, opts := range []firestorestate.Options{{}, {Database: "db"}, {Project: "a/b"}, {Project: "a", Database: "b/c"}} {
		if s, err := firestorestate.Open(t.Context(), opts); err == nil {
			_ = s.Close()
			t.Errorf("%+v was taken", opts)
		}
	}
}

// TestForeignDocuments leaves out what others have put into the collections.
func TestForeignDocuments(t *testing.T) {
	t.Parallel()
	fake := firestorefake.New()
	log := newLines()
	opts := at(serve(t, fake))
	opts.Logger = log.logger()
	s := open(t, opts)
	src, _ := follow(t, s, 1)
	set(t, src, of("tag", 1))
	const root = "projects/test/databases/(default)/documents/jobs/"
	for _, name := range []string{"a", "b", "job-1/states/note", "z"} {
		write := &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{Name: root + name}}}
		if _, err := fake.Commit(t.Context(), &pb.CommitRequest{Writes: []*pb.Write{write}}); err != nil {
			t.Fatal(err)
		}
	}
	log.until(t, "states/note", 1)
	for _, limit := range []int{1, 2, 10} {
		jobs, err := s.Jobs(t.Context(), "", limit)
		if err != nil || len(jobs) != 1 || jobs[0].Job != job {
			t.Errorf("up to %d jobs are %v, %v", limit, jobs, err)
		}
	}
	if _, f := follow(t, s, 0); f.version("tag") != 1 || f.reason() != nil {
		t.Errorf("opened again: version %d, %v", f.version("tag"), f.reason())
	}
	set(t, src, of("tag", 2))
}
