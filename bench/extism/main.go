// Command extism compares jobhost's sandboxes with Extism's SDK for Go, in one
// run on one machine: the same plugins, and the same work in jobhost's own ABI.
//
// The two sides don't provide the same. Extism's is one instance that is used
// again and again, as its users do, with what earlier calls left in its memory
// and without a deadline. Each of ours is a job in a pristine sandbox and under
// a deadline, with its fuel counted. Both run on the same version of wazero.
//
// It is a separate module, so that jobhost doesn't depend on what it is
// compared with. From the root of the repository:
//
//	make bench-extism
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 15, "`times` that each side of a comparison has its turn")
	turn := flag.Duration("turn", 100*time.Millisecond, "`time` of one turn")
	root := flag.String("root", "../..", "`folder` of the repository")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *root, *rounds, *turn); err != nil {
		fmt.Fprintln(os.Stderr, "bench/extism:", err)
		os.Exit(1)
	}
}

// run measures all comparisons and prints them as a table.
func run(ctx context.Context, out io.Writer, root string, rounds int, turn time.Duration) error {
	m := newModules(root)
	printMachine(out)
	fmt.Fprintf(out, "%d rounds of %v a side; medians (from–to)\n\n", rounds, turn)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "job\tbytes\tgo-sdk, reused\tjobhost, pristine\ttimes faster\tbudget\t")
	for _, c := range comparisons() {
		f, err := c.measure(ctx, m, rounds, turn)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t\n", c.name, c.size, f.theirs, f.ours, f.ratio, c.verdict(f.ratio))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printLoad(out, "after")
	return nil
}

// verdict compares a ratio with the comparison's budget.
func (c *comparison) verdict(ratio figures) string {
	switch {
	case c.budget == 0:
		return ""
	case ratio.median < c.budget:
		return fmt.Sprintf("≥ %g× MISSED", c.budget)
	}
	return fmt.Sprintf("≥ %g×", c.budget)
}
