package jobhost_test

import (
	"bytes"
	"errors"
	"fmt"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// A handler is an ordinary function, and Run tests it without wasm.
func ExampleRun() {
	shout := func(job *jobhost.Job) ([]byte, error) {
		if len(job.Input()) == 0 {
			return nil, jobhost.Permanent(errors.New("nothing to shout"))
		}
		job.Log(jobhost.LevelInfo, "shouting")
		return bytes.ToUpper(job.Input()), nil
	}

	got := jobhost.Run(shout, jobhost.Attempt{Input: []byte("hello")})
	fmt.Printf("%s %q\n", got.Output, got.Logs)

	got = jobhost.Run(shout, jobhost.Attempt{})
	fmt.Println(got.Err)
	// Output:
	// HELLO ["info shouting"]
	// nothing to shout
}

// A failure can say more than its message.
func ExampleFailure() {
	handler := func(*jobhost.Job) ([]byte, error) {
		return nil, &jobhost.Failure{
			Err:      errors.New("row 7 has 3 columns instead of 4"),
			Code:     "bad_row",
			Category: jobhost.Validation,
			Context:  map[string]string{"row": "7"},
		}
	}
	err := jobhost.Run(handler, jobhost.Attempt{}).Err
	fmt.Println(errors.AsType[*jobhost.Failure](err))
	// Output: row 7 has 3 columns instead of 4 true
}
