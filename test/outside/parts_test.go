package outside_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/await"
	"github.com/jobhost/jobhost/host/exec"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// shout is a fiber's body.
func shout(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
	for {
		message, err := op.Perform(ctx, f.Recv())
		if err != nil {
			return nil, nil // no more input, or it is to end
		}
		_ = f.Emit([]byte(strings.ToUpper(string(message))))
	}
}

func Example_fiber() {
	ctx := context.Background()
	root := scope.New(ctx, "program")
	fibers, err := fiber.New(fiber.Config{Scope: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := fibers.Start(ctx, jobhost.FiberSpec{ID: "echo", Worker: "shout"}, shout, nil); err != nil {
		fmt.Println(err)
		return
	}
	answers, err := fibers.Subscribe(jobhost.FiberQuery{ID: "echo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answers.Close()
	_ = fibers.SendFiber(ctx, "echo", []byte("hello"), true)
	answer, err := op.Perform(ctx, within(answers.NextOp(), time.Minute))
	fmt.Println(string(answer.Value.Data), err)

	root.Cancel(nil)
	_, _ = root.Join(ctx)
	// Output: HELLO <nil>
}

func Example_state() {
	ctx := context.Background()
	store := statetest.NewMemory()
	board, err := state.NewBoard(ctx, store, state.Job{ID: "import"}, 1, state.Observer{})
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := state.NewManager(board, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	sub, err := task.Subscribe(ctx, state.WithTag("rows"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sub.Close()
	_ = task.SetState(ctx, state.State{Tag: "rows", Status: 40})

	changes := await.NewChanges(sub)
	for {
		e, err := op.Perform(ctx, within(changes.Next(), time.Minute))
		if err != nil || !e.Sentinel {
			fmt.Println(e.State.Tag, e.State.Status, err)
			break
		}
	}
	_ = errors.Join(board.Close(), store.Close())
	// Output: rows 40 <nil>
}

func Example_process() {
	root := scope.New(context.Background(), "program")
	out := stream.NewPipe(4096)
	p, err := exec.Start(root, exec.Command{Path: "sh", Args: []string{"-c", "echo ready; exec sleep 1000"}, Stdout: out})
	if err != nil {
		fmt.Println(err)
		return
	}
	line, err := op.PerformRaw(within(out.LineOp(), time.Minute))
	fmt.Printf("%q %v\n", line, err)
	died := op.Wrap(p.Exit(), func(s *os.ProcessState) (string, error) { return s.String(), nil })
	fmt.Println(op.PerformRaw(op.OrElse(died, func() (string, error) { return "it runs", nil })))
	end, _ := op.PerformRaw(p.Shutdown(time.Minute))
	fmt.Println(end)
	_, _ = root.Join(context.Background())
	// Output:
	// "ready\n" <nil>
	// it runs <nil>
	// signal: terminated
}

func Example_supervisor() {
	root := scope.New(context.Background(), "program")
	child, err := root.Child("worker")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = child.Go("loop", func(context.Context) error { return errors.New("no more memory") })
	what, _ := op.PerformRaw(op.Choice(
		op.Wrap(child.FaultOp(), func(err error) (string, error) { return "failed: " + err.Error(), nil }),
		op.Wrap(child.CancelOp(), func(c *scope.Cancelled) (string, error) { return "was told to stop", nil }),
	))
	fmt.Println(what)
	_, _ = root.Join(context.Background())
	// Output: failed: loop: no more memory
}

func Example_mailbox() {
	root := scope.New(context.Background(), "program")
	jobs := op.NewMailbox[int](16, op.Block)
	permits := op.NewSemaphore(2)
	var done op.WaitGroup
	_ = root.Go("dispatch", func(ctx context.Context) error {
		for {
			n, err := op.Perform(ctx, jobs.Recv())
			if err != nil {
				return nil // it is closed, and empty
			}
			if _, err := op.Perform(ctx, permits.Acquire()); err != nil {
				return err
			}
			_ = root.Go("job", func(context.Context) error {
				defer done.Done()
				defer permits.Release()
				_ = n * n
				return nil
			})
		}
	})
	done.Add(5)
	for i := range 5 {
		_, _ = op.PerformRaw(jobs.Send(i))
	}
	jobs.Close()
	_, err := op.PerformRaw(within(done.Wait(), time.Minute))
	fmt.Println("all done:", err)
	_, _ = root.Join(context.Background())
	// Output: all done: <nil>
}
