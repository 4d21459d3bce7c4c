package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

func newDeadSummaryCommand(e deadEnv) *cobra.Command {
	var (
		worker        string
		after, before = instant{now: e.now}, instant{now: e.now}
	)
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Count deaths by code, category, worker and time",
		Long: `Count deaths by code, category, worker and time: of the last 24 hours unless
the flags say otherwise, by the hour for up to three days and by the day beyond.
Every death counts, even if the task was retried later.`,
		Example: `  jobhost dead summary
  jobhost dead summary --worker loganalyzer --after 7d`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.summary(cmd.Context(), jobhost.DeadQuery{Worker: worker, After: after.time, Before: before.time})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&worker, "worker", "", "only deaths of this `WORKER`")
	flags.Var(&after, "after", "only deaths at `TIME` or later: a time, or how long ago (default 24h)")
	flags.Var(&before, "before", "only deaths before `TIME`")
	_ = cmd.RegisterFlagCompletionFunc("worker", completeWorkers(e.env))
	return cmd
}

func (e deadEnv) summary(ctx context.Context, query jobhost.DeadQuery) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	s, err := server.DeadSummary(ctx, query)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(s)
	}
	_, _ = fmt.Fprintf(e.stdout, "%s from %s to %s\n", plural(int(s.Deaths), "death"), s.After.Format(time.RFC3339), s.Before.Format(time.RFC3339))
	for _, part := range []struct {
		heading string
		counts  []jobhost.DeathCount
	}{{"CODE", s.Codes}, {"CATEGORY", s.Categories}, {"WORKER", s.Workers}} {
		if len(part.counts) == 0 {
			continue
		}
		_, _ = fmt.Fprintln(e.stdout)
		t := e.newTable(part.heading, "DEATHS")
		for _, c := range part.counts {
			t.row(c.Name, strconv.FormatInt(c.Deaths, 10))
		}
		t.flush()
	}
	if s.Deaths > 0 {
		e.showTrend(s.Trend)
	}
	return e.stdout.failure()
}

// showTrend draws the deaths of each hour or day that had any.
func (e deadEnv) showTrend(trend []jobhost.DeathTime) {
	const width = 40 // of the longest bar
	most := int64(1)
	for _, t := range trend {
		most = max(most, t.Deaths)
	}
	_, _ = fmt.Fprintln(e.stdout)
	table := e.newTable("SINCE", "DEATHS", "TREND")
	for _, t := range trend {
		if t.Deaths == 0 {
			continue
		}
		bar := strings.Repeat("#", int((t.Deaths*width+most-1)/most))
		_, _ = fmt.Fprintf(table.w, "%s\t%d\t%s\n", t.Since.Format("2006-01-02 15:04"), t.Deaths, bar)
	}
	table.flush()
}
