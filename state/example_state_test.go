package state_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jobhost/jobhost/state"
	"github.com/jobhost/jobhost/state/statetest"
)

// Two tasks of a job report how far they are, watch each other and meet. The
// store is one for tests; sqlitestate keeps states in a file.
func Example() {
	ctx := context.Background()
	store := statetest.NewMemory()
	board, err := state.NewBoard(ctx, store, state.Job{ID: "job-123"}, 2, state.Observer{})
	if err != nil {
		log.Fatal(err)
	}
	var tasks []*state.Manager
	for i := range board.Tasks() {
		m, err := state.NewManager(board, i)
		if err != nil {
			log.Fatal(err)
		}
		tasks = append(tasks, m)
	}

	// Each sets its own states. What the other has not reported counts as 0.
	if err := tasks[1].SetStarted(ctx, state.State{TaskID: 1, Tag: "ingest"}); err != nil {
		log.Fatal(err)
	}
	low, err := tasks[0].GetState(ctx, state.WithTag("ingest"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("lowest: task %d has status %d\n", low.TaskID, low.Status)

	// A subscription begins with what there is, and goes on with what changes.
	sub, err := tasks[0].Subscribe(ctx, state.WithTag("ingest"))
	if err != nil {
		log.Fatal(err)
	}
	for i, m := range tasks {
		if err := m.SetState(ctx, state.State{TaskID: i, Tag: "ingest", Status: 50, Message: "half way"}); err != nil {
			log.Fatal(err)
		}
	}
	for range 4 {
		switch e := <-sub.Events(); {
		case e.Sentinel:
			fmt.Println("that was all there is")
		default:
			fmt.Printf("task %d, version %d: %s (replay: %v)\n", e.State.TaskID, e.State.Version, e.State.Message, e.Replay)
		}
	}

	// A barrier waits until all are as far, and returns the states of all tasks.
	states, err := tasks[0].Synchronize(ctx, "ingest", 50)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range states {
		fmt.Printf("task %d is at %d\n", s.TaskID, s.Status)
	}
	_ = errors.Join(board.Close(), store.Close())
	// Output:
	// lowest: task 0 has status 0
	// task 1, version 1: 🟢 Started (replay: true)
	// that was all there is
	// task 0, version 1: half way (replay: false)
	// task 1, version 2: half way (replay: false)
	// task 0 is at 50
	// task 1 is at 50
}
