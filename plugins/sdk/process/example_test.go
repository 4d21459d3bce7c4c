package process_test

import (
	"context"
	"fmt"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process"
)

// count counts words, and fails permanently if there are none.
func count(ctx context.Context, job *process.Job) ([]byte, error) {
	words := len(strings.Fields(string(job.Input())))
	if words == 0 {
		return nil, &jobhost.Failure{Err: fmt.Errorf("no words in %d bytes", job.InputSize()), Code: "no_words", Permanent: true}
	}
	return fmt.Append(nil, words), job.Counter("words").Add(float64(words))
}

// A handler is tested like any function.
func ExampleRun() {
	got := process.Run(context.Background(), count, jobhost.Attempt{Input: []byte("one two three")})
	fmt.Printf("%s words, metric %v\n", got.Output, got.Observed["words"])
	got = process.Run(context.Background(), count, jobhost.Attempt{})
	fmt.Println(got.Err)
	// Output:
	// 3 words, metric [3]
	// no words in 0 bytes
}

// A worker with several entries and a preparation.
func ExampleWorker() {
	greeting := "hello"
	worker := process.Worker{
		Start: func(_ context.Context, host process.Host) error {
			if text, ok := host.Config["greeting"]; ok {
				greeting = text
			}
			return nil
		},
		Handler: func(_ context.Context, job *process.Job) ([]byte, error) {
			return append([]byte(greeting+", "), job.Input()...), nil
		},
		Entries: map[string]process.Handler{"count": count},
	}
	_ = worker // main calls worker.Serve()
}
