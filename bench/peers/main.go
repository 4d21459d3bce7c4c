// Command peers runs the same no-op jobs through jobhost, through River on
// PostgreSQL and through asynq on Redis, in turns on one machine, and prints
// what each of them achieved: jobs accepted and jobs durably ended per second,
// the time from submit to end at a quiet pace, and the processor time per job,
// including the database's.
//
// Each measurement is a process of its own that holds the producers and the
// workers of one system, with a fresh database beside it if one is needed.
// PostgreSQL and Redis are started for it with folders and ports of their own,
// and are always stopped by their process ids. All jobs of a measurement must
// have run and ended, and none twice; a measurement that lost one fails.
//
// It is a separate module, so that jobhost doesn't depend on what it is
// compared with, and for Linux only: it reads /proc. From the root of the
// repository, as root if PostgreSQL and Redis are to be installed:
//
//	make bench-peers PEERS='-rounds 5 -jobs 50000'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) } //nolint:forbidigo // it is main that decides

// run is the program; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var err error
	if len(args) > 0 && args[0] == measureCommand {
		err = measureMain(ctx, stdin, stdout)
	} else {
		err = compareMain(ctx, args, stdout, stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 2
	case err != nil:
		fmt.Fprintln(stderr, "peers:", err)
		return 1
	}
	return 0
}

// options are what the flags say.
type options struct {
	rounds  int
	systems []string
	dir     string
	json    bool
	load    load
}

// load is what each system is given to do.
type load struct {
	Jobs      int           // with one job a call, and as many again in batches
	Producers int           // that wait for their acknowledgement
	Batch     int           // jobs a call where a system takes many
	Warmup    int           // jobs before the clock starts
	Payload   int           // bytes
	Rate      int           // jobs a second at the quiet pace
	Quiet     time.Duration // of the quiet pace
	Timeout   time.Duration // of a measurement
}

// jobs is how many jobs a measurement has.
func (l *load) jobs() int { return l.Warmup + 2*l.Jobs + l.paced() }

// paced is how many of them come at the quiet pace.
func (l *load) paced() int { return int(float64(l.Rate) * l.Quiet.Seconds()) }

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	var o options
	var systems string
	var smoke bool
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 3, "`times` that each system has its turn")
	flags.IntVar(&o.load.Jobs, "jobs", 20_000, "`jobs` of a throughput measurement")
	flags.IntVar(&o.load.Producers, "producers", 256, "`producers` that submit and wait for the acknowledgement")
	flags.IntVar(&o.load.Batch, "batch", 100, "`jobs` a call, where a system takes many")
	flags.IntVar(&o.load.Warmup, "warmup", 5_000, "`jobs` before the clock starts")
	flags.IntVar(&o.load.Payload, "payload", 64, "`bytes` of payload")
	flags.IntVar(&o.load.Rate, "rate", 100, "`jobs` a second for the times from submit to end")
	flags.DurationVar(&o.load.Quiet, "quiet", 5*time.Second, "`time` at that rate")
	flags.DurationVar(&o.load.Timeout, "timeout", 5*time.Minute, "`time` after which a measurement has failed")
	flags.StringVar(&systems, "systems", strings.Join(systemNames(), ","), "`names` of the systems to measure")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "`folder` for the databases; it matters which disk that is on")
	flags.BoolVar(&o.json, "json", false, "print all measurements as JSON instead of a table")
	flags.BoolVar(&smoke, "smoke", false, "a run of a second that shows that it works: jobhost alone, few jobs")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if smoke {
		o.rounds, systems = 1, jobhostName
		o.load.Jobs, o.load.Producers, o.load.Batch, o.load.Warmup = 300, 16, 20, 50
		o.load.Quiet = 200 * time.Millisecond
	}
	o.systems = strings.Split(systems, ",")
	return &o, o.check()
}

func (o *options) check() error {
	l := o.load
	if o.rounds < 1 || l.Jobs < 1 || l.Producers < 1 || l.Batch < 1 || l.Warmup < 0 || l.Payload < 0 || l.Rate < 1 || l.paced() < 1 {
		return errors.New("the numbers of rounds, jobs, producers, and jobs in a batch and at the quiet pace are at least 1")
	}
	for _, name := range o.systems {
		if _, ok := contenders[name]; !ok {
			return fmt.Errorf("there is no system %q; there are: %s", name, strings.Join(systemNames(), ", "))
		}
	}
	return nil
}
