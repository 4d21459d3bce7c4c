// Command hello is the smallest useful worker: it greets the name in the
// payload.
package main

import (
	"bytes"
	"context"
	"errors"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

func main() { process.Serve(hello) }

// hello greets. An empty payload can't be cured by another attempt.
func hello(_ context.Context, job *process.Job) ([]byte, error) {
	name := bytes.TrimSpace(job.Input())
	if len(name) == 0 {
		return nil, jobhost.Permanent(errors.New("nobody to greet: the payload is empty"))
	}
	return append([]byte("hello, "), name...), nil
}
