package stream_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/host/stream"
)

// Lines of a file, each awaited at most so long.
func ExampleFrom() {
	s := scope.New(context.Background(), "example")
	lines, err := stream.From(s, io.NopCloser(strings.NewReader("one\ntwo")), 4096)
	if err != nil {
		fmt.Println(err)
		return
	}
	next := op.Choice(
		lines.LineOp(),
		op.Wrap(op.After(time.Minute), func(time.Time) ([]byte, error) { return nil, context.DeadlineExceeded }),
	)
	for {
		line, err := op.PerformRaw(next)
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%q\n", line)
	}
	_, _ = s.Join(context.Background())
	// Output:
	// "one\n"
	// "two"
	// EOF
}
