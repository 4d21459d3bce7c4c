package workertest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jobhost/jobhost/host"
	"github.com/jobhost/jobhost/host/workertest"
	"github.com/jobhost/jobhost/internal/testing/guests"
	"github.com/jobhost/jobhost/runtime/wasm"
)

// A worker's cases are run by a program, as `jobhost worker test` does.
func Example() {
	dir, err := os.MkdirTemp("", "cases")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_ = os.WriteFile(filepath.Join(dir, "greeting.in"), []byte("hello"), 0o600)
	_ = os.WriteFile(filepath.Join(dir, "greeting.out"), []byte("HELLO"), 0o600)

	engine, err := wasm.New(wasm.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer func() { _ = engine.Close(ctx) }()
	suite, err := workertest.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := workertest.Runner{Engine: engine, Worker: host.Worker{Name: "echo", Plugin: guests.Echo}, Free: true, Parallel: 1}
	err = r.Run(ctx, suite, suite.Cases, func(result *workertest.Result) {
		fmt.Println(result.Case.Name, result.OK())
		for _, d := range result.Differences {
			fmt.Printf("%s: want %s, got %s\n", d.What, d.Want, d.Got)
		}
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// greeting false
	// output: want "HELLO", got "hello"
}
