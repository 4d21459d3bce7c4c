package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// print writes the medians, their ranges and the conditions, as Markdown that
// is readable as it is.
func (c *comparison) print(out io.Writer, systems []string) error {
	if err := c.printFigures(out, systems, middle); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nMedians of %d rounds, all systems in turns. %d producers that wait for the acknowledgement submit %d jobs with %d bytes\n"+
		"of payload, one a call and then %d a call. The processor time is that of producers, workers and database.\n\n",
		len(c.of(systems[0])), c.Load.Producers, c.Load.Jobs, c.Load.Payload, c.Load.Batch)
	c.printRatios(out, systems)
	fmt.Fprintf(out, "\n%s: %s. Load average %s before, %s after.\n\nFrom–to:\n\n", c.Date, c.Machine, c.LoadAverages[0], c.LoadAverages[1])
	if err := c.printFigures(out, systems, spread); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, name := range systems {
		first := c.of(name)[0]
		fmt.Fprintf(out, "- %s: %s. %s. %s.\n  %s\n", name, first.About.Versions, first.About.Durability, first.About.Settings, c.delivered(name))
	}
	return nil
}

// printFigures writes a table with one row for each system.
func (c *comparison) printFigures(out io.Writer, systems []string, sum func([]result, figure) string) error {
	columns := []struct {
		name string
		figure
	}{
		{"enqueued/s", perSecond(func(r *result) float64 { return r.Single.Enqueued })},
		{"durably done/s", perSecond(func(r *result) float64 { return r.Single.Done })},
		{"in batches: enqueued/s", perSecond(func(r *result) float64 { return r.Batched.Enqueued })},
		{"durably done/s", perSecond(func(r *result) float64 { return r.Batched.Done })},
		{fmt.Sprintf("at %d/s: to run, p50", c.Load.Rate), millis(func(r *result) time.Duration { return r.Quiet.Run50 })},
		{"to done, p50", millis(func(r *result) time.Duration { return r.Quiet.Done50 })},
		{"to done, p99", millis(func(r *result) time.Duration { return r.Quiet.Done99 })},
		{"CPU per 1,000 jobs", millis(func(r *result) time.Duration { return r.Single.CPU })},
		{"in batches", millis(func(r *result) time.Duration { return r.Batched.CPU })},
	}
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	head, rule := "| \t|", "|---\t|"
	for _, column := range columns {
		head += " " + column.name + "\t|"
		rule += "---\t|"
	}
	fmt.Fprintln(w, head)
	fmt.Fprintln(w, rule)
	for _, name := range systems {
		row := "| " + name + "\t|"
		for _, column := range columns {
			row += " " + sum(c.of(name), column.figure) + "\t|"
		}
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}

// delivered summarizes the delivery of the jobs of a system.
func (c *comparison) delivered(name string) string {
	var d delivery
	for _, r := range c.of(name) {
		d.Acknowledged += r.Delivery.Acknowledged
		d.Lost += r.Delivery.Lost
		d.RunTwice += r.Delivery.RunTwice
	}
	return fmt.Sprintf("%d jobs acknowledged, %d lost, %d run more than once.", d.Acknowledged, d.Lost, d.RunTwice)
}

// printRatios compares jobhost with the others, round by round, so that load on
// the machine affects both.
func (c *comparison) printRatios(out io.Writer, systems []string) {
	ours := c.of(jobhostName)
	if len(ours) == 0 {
		return
	}
	for _, name := range systems {
		theirs := c.of(name)
		if name == jobhostName {
			continue
		}
		single, best := make([]float64, len(ours)), make([]float64, len(ours))
		for i := range ours {
			single[i] = ours[i].Single.Done / theirs[i].Single.Done
			best[i] = max(ours[i].Single.Done, ours[i].Batched.Done) / max(theirs[i].Single.Done, theirs[i].Batched.Done)
		}
		fmt.Fprintf(out, "jobhost does %.1f times the jobs of %s one a call, and %.1f times at the best of each.\n", median(single), name, median(best))
	}
}

// of returns the measurements of a system, in the order of the rounds.
func (c *comparison) of(name string) []result {
	var all []result
	for _, r := range c.Results {
		if r.System == name {
			all = append(all, r)
		}
	}
	return all
}

// figure is a number of a measurement and how to format it.
type figure struct {
	of    func(*result) float64
	write func(float64) string
}

func perSecond(of func(*result) float64) figure {
	return figure{of, func(v float64) string { return thousands(int64(v + 0.5)) }}
}

func millis(of func(*result) time.Duration) figure {
	return figure{
		func(r *result) float64 { return float64(of(r)) / float64(time.Millisecond) },
		func(v float64) string {
			if v >= 20 {
				return fmt.Sprintf("%.0f ms", v)
			}
			return fmt.Sprintf("%.2g ms", v)
		},
	}
}

// values are the figure of each measurement.
func (f *figure) values(all []result) []float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = f.of(&all[i])
	}
	return values
}

// none stands for a figure that a system doesn't have.
const none = "–"

// middle formats the median of a figure.
func middle(all []result, f figure) string {
	if v := median(f.values(all)); v > 0 {
		return f.write(v)
	}
	return none
}

// spread formats the range of a figure.
func spread(all []result, f figure) string {
	values := f.values(all)
	low, high := slices.Min(values), slices.Max(values)
	if high == 0 {
		return none
	}
	return f.write(low) + "–" + f.write(high)
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// thousands formats a number with commas.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
