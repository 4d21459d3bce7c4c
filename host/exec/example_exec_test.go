package exec_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jobhost/jobhost/host/exec"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
)

// A build that may take a minute, and then five seconds to clean up.
func ExampleStart() {
	s := scope.New(context.Background(), "example")
	out := stream.NewPipe(4096)
	build, err := exec.Start(s, exec.Command{Path: "sh", Args: []string{"-c", "echo built"}, Stdout: out, Stderr: out})
	if err != nil {
		fmt.Println(err)
		return
	}
	late := op.Wrap(op.After(time.Minute), func(time.Time) (*os.ProcessState, error) {
		return op.PerformRaw(build.Shutdown(5 * time.Second))
	})
	state, err := op.PerformRaw(op.Choice(build.Exit(), late))
	line, _ := op.PerformRaw(out.LineOp())
	fmt.Printf("%s%v %v\n", line, state, err)
	_, _ = s.Join(context.Background())
	// Output:
	// built
	// exit status 0 <nil>
}
