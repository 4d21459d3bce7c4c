package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

func newJobLogsCommand(e jobEnv) *cobra.Command {
	return e.one("logs", "Print what the attempts of a job logged",
		`  ID=$(jobhost submit loganalyzer @access.log)
  jobhost job logs $ID`, e.logs)
}

func (e jobEnv) logs(ctx context.Context, server jobhost.Server, id string) error {
	logs, err := server.Logs(ctx, id)
	if err != nil {
		return err
	}
	for i := range logs {
		l := &logs[i]
		if e.wantsJSON() {
			if err := e.json(l); err != nil {
				return err
			}
			continue
		}
		if len(logs) > 1 {
			_, _ = fmt.Fprintf(e.stdout, "--- task %d, attempt %d\n", l.Task, l.Attempt)
		}
		for _, line := range l.Lines {
			_, _ = fmt.Fprintln(e.stdout, text.Escape(line, "\t"))
		}
		if l.Dropped > 0 {
			e.note("%s over the limits dropped from task %d, attempt %d", plural(int(l.Dropped), "line"), l.Task, l.Attempt)
		}
	}
	return nil
}
