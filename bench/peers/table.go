package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// print writes the table and what it was made with, as Markdown that can be
// read as it is.
func (c *comparison) print(out io.Writer, systems []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| system\t| enqueued/s\t| durably done/s\t| in batches: enqueued/s\t| done/s\t| at "+
		fmt.Sprintf("%d/s: submit to run, p50\t| to done, p50\t| p99\t| CPU per 1,000 jobs\t| in batches\t|", c.Load.Rate))
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, name := range systems {
		all := c.of(name)
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", name,
			spread(all, perSecond(func(r *result) float64 { return r.Single.Enqueued })),
			spread(all, perSecond(func(r *result) float64 { return r.Single.Done })),
			spread(all, perSecond(func(r *result) float64 { return r.Batched.Enqueued })),
			spread(all, perSecond(func(r *result) float64 { return r.Batched.Done })),
			spread(all, millis(func(r *result) time.Duration { return r.Quiet.Run50 })),
			spread(all, millis(func(r *result) time.Duration { return r.Quiet.Done50 })),
			spread(all, millis(func(r *result) time.Duration { return r.Quiet.Done99 })),
			spread(all, millis(func(r *result) time.Duration { return r.Single.CPU })),
			spread(all, millis(func(r *result) time.Duration { return r.Batched.CPU })))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nMedians of %d rounds, all systems in turns (from–to). %d producers that wait for the acknowledgement submit %d jobs\n"+
		"with %d bytes of payload, one a call and then %d a call. The processor time is that of producers, workers and database.\n\n",
		len(c.of(systems[0])), c.Load.Producers, c.Load.Jobs, c.Load.Payload, c.Load.Batch)
	for _, name := range systems {
		first := c.of(name)[0]
		fmt.Fprintf(out, "- %s: %s. %s. %s.\n  %s\n", name, first.About.Versions, first.About.Durability, first.About.Settings, c.delivered(name))
	}
	fmt.Fprintf(out, "\n%s: %s. Load average %s before, %s after.\n", c.Date, c.Machine, c.LoadAverages[0], c.LoadAverages[1])
	c.printRatios(out, systems)
	return nil
}

// delivered sums up what became of the jobs of a system.
func (c *comparison) delivered(name string) string {
	var d delivery
	for _, r := range c.of(name) {
		d.Acknowledged += r.Delivery.Acknowledged
		d.Lost += r.Delivery.Lost
		d.RunTwice += r.Delivery.RunTwice
	}
	return fmt.Sprintf("%d jobs acknowledged, %d lost, %d run more than once.", d.Acknowledged, d.Lost, d.RunTwice)
}

// printRatios compares jobhost with the others, round by round, so that what
// slows the machine down slows both.
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

// of are the measurements of a system, in the order of the rounds.
func (c *comparison) of(name string) []result {
	var all []result
	for _, r := range c.Results {
		if r.System == name {
			all = append(all, r)
		}
	}
	return all
}

// figure is a number of a measurement and how to write it.
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

// spread writes the median of a figure and its range; "–" when a system has none.
func spread(all []result, f figure) string {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = f.of(&all[i])
	}
	low, high := slices.Min(values), slices.Max(values)
	switch {
	case high == 0:
		return "–"
	case len(values) == 1:
		return f.write(high)
	}
	return fmt.Sprintf("%s (%s–%s)", f.write(median(values)), f.write(low), f.write(high))
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// thousands writes a number with commas.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
