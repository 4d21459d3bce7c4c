// Command demo runs an example: it runs a host with the example's manifest, and a
// local site if one is needed, and plays the part of a user, showing the output.
//
//	go run ./plugins/examples/internal/demo fetch
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	program := flags.String("jobhost", "bin/jobhost", "the `PROGRAM`")
	folder := flags.String("examples", "plugins/examples", "`FOLDER` of the examples")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	example, ok := examples[flags.Arg(0)]
	if !ok || flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: demo", strings.Join(slices.Sorted(maps.Keys(examples)), " | "))
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	d := &demo{example: example, name: flags.Arg(0), program: *program, folder: *folder, stdout: stdout, stderr: stderr}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return 1
	}
	return 0
}
