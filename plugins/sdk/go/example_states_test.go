//go:build !wasip1

package jobhost_test

import (
	"fmt"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// Two tasks load their parts and wait for each other. Here task 0 is run, and
// the reports of task 1 are given.
func ExampleJob_Synchronize() {
	load := func(job *jobhost.Job) ([]byte, error) {
		if err := job.SetState("loaded", 1, "part "+fmt.Sprint(job.Task()), nil); err != nil {
			return nil, err
		}
		if _, err := job.Synchronize("loaded", 1, time.Minute); err != nil {
			return nil, err
		}
		return []byte("all have loaded"), job.SetFinished("loaded")
	}
	other := jobhost.Report{State: jobhost.State{Task: 1, Tag: "loaded", Status: 1}, After: 30 * time.Second}
	got := jobhost.Run(load, jobhost.Attempt{Tasks: 2, Reports: []jobhost.Report{other}})
	fmt.Println(string(got.Output), got.Err)
	for _, s := range got.States {
		fmt.Println(s.Tag, s.Status, s.Message)
	}

	other.After = time.Hour
	fmt.Println(jobhost.Run(load, jobhost.Attempt{Tasks: 2, Reports: []jobhost.Report{other}}).Err)
	// Output:
	// all have loaded <nil>
	// loaded 1 part 0
	// loaded 2147483647 ⚫ Finished
	// synchronize loaded: task 1 is at 0: not in time
}

// A fiber answers each message until its inbox is closed.
func ExampleJob_Messages() {
	greet := func(job *jobhost.Job) ([]byte, error) {
		for name, err := range job.Messages() {
			if err != nil {
				return nil, err
			}
			if err := job.Emit(append([]byte("hello, "), name...)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	got := jobhost.Run(greet, jobhost.Attempt{Messages: []jobhost.Message{{Data: []byte("Ada")}, {Data: []byte("Grace"), After: time.Hour}}})
	for _, said := range got.Emitted {
		fmt.Println(string(said))
	}
	// Output:
	// hello, Ada
	// hello, Grace
}
