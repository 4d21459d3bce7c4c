package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// mostTags is how many tags of a job people are shown.
const mostTags = 8

func newStateGetCommand(e stateEnv) *cobra.Command {
	var of stateSelection
	cmd := &cobra.Command{
		Use:   "get JOB",
		Short: "Show the progress of a job: its state, and those of all tasks and tags",
		Long: `Show the progress of a job: its state, and those of all tasks and tags.

The state of a job is its lowest status: errors below 0, then tasks that have not
started or reported nothing, then the progress of the others. Ties go to the lowest
task and then to the first tag. A dash means that nothing was reported; under _run
the host itself reports the attempts of its tasks.`,
		Example: `  jobhost state get import-2026-02
  jobhost state get import-2026-02 --tag ingest
  jobhost state get import-2026-02 --task 3 --tag ingest -o json`,
		Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := of.query(cmd, args[0])
			if err != nil {
				return err
			}
			return e.get(cmd.Context(), query)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	of.register(cmd)
	return cmd
}

func (e stateEnv) get(ctx context.Context, query jobhost.StateQuery) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	report, err := server.States(ctx, query)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(&report)
	}
	e.show(&report.State)
	if query.Task == nil || query.Tag == "" {
		e.showGrid(&report, query.Task)
	}
	return nil
}

// grid is what a job's tasks have reported.
type grid struct {
	tags  []string
	tasks []int
	cells map[int]map[string]int32
}

// newGrid arranges the states of a report, by task, with those first that are the
// least far if there are more than people are shown. only, if not nil, is the only task.
func newGrid(report *jobhost.StateReport, only *int) *grid {
	g := &grid{cells: map[int]map[string]int32{}}
	tags := map[string]bool{}
	for i := range report.States {
		s := &report.States[i]
		if g.cells[s.TaskID] == nil {
			g.cells[s.TaskID] = map[string]int32{}
		}
		g.cells[s.TaskID][s.Tag] = s.Status
		tags[s.Tag] = true
	}
	g.tags = slices.Sorted(maps.Keys(tags))
	if only != nil {
		g.tasks = []int{*only}
		return g
	}
	for task := range min(report.Tasks, jobhost.MaxTasks) {
		g.tasks = append(g.tasks, task)
	}
	if len(g.tasks) > mostTasks {
		slices.SortStableFunc(g.tasks, func(a, b int) int { return cmp.Compare(g.lowest(a), g.lowest(b)) })
	}
	return g
}

// lowest is the lowest status of a task.
func (g *grid) lowest(task int) int32 {
	if len(g.cells[task]) == 0 {
		return jobhost.StatusNotStarted
	}
	low := int32(math.MaxInt32)
	for _, status := range g.cells[task] {
		low = min(low, status)
	}
	return low
}

func (e stateEnv) showGrid(report *jobhost.StateReport, only *int) {
	g := newGrid(report, only)
	if len(g.tags) == 0 {
		return
	}
	tags, tasks := g.tags[:min(len(g.tags), mostTags)], g.tasks[:min(len(g.tasks), mostTasks)]
	_, _ = fmt.Fprintln(e.stdout)
	t := e.newTable(append([]string{"TASK"}, tags...)...)
	for _, task := range tasks {
		row := []string{strconv.Itoa(task)}
		for _, tag := range tags {
			cell := ""
			if status, there := g.cells[task][tag]; there {
				cell = statusName(status)
			}
			row = append(row, cell)
		}
		t.row(row...)
	}
	t.flush()
	e.andMore(len(g.tasks)-len(tasks), "further task")
	e.andMore(len(g.tags)-len(tags), "further tag")
}
