package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobhost/jobhost"
)

// scheduleEnv is env for the commands about schedules.
type scheduleEnv struct{ *env }

func newScheduleCommand(e scheduleEnv) *cobra.Command {
	return newGroup("schedule", "Show, run, pause and resume schedules",
		newScheduleListCommand(e),
		e.one("show", "Show a schedule in full, with its next ticks", "", e.show),
		e.one("run", "Submit the job of a schedule now",
			`This ignores its ticks, its overlap policy and a pause. The id of the job is
printed.`, e.run),
		e.one("pause", "Pause a schedule",
			`The pause survives restarts. Jobs that exist go on, and jobhost schedule run
works.`, e.turn(jobhost.Scheduler.PauseSchedule)),
		e.one("resume", "Resume a schedule",
			`Ticks count from now on: missed ones are not caught up. It also helps a
schedule that fired while the clock of the machine was ahead.`, e.turn(jobhost.Scheduler.ResumeSchedule)))
}

func newScheduleListCommand(e scheduleEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the schedules of the host with their next tick",
		Example: `  jobhost schedule ls
  jobhost schedule ls -o json`,
		Args:              exactly(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return e.list(cmd.Context()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// scheduleSubject are schedules, which commands name.
var scheduleSubject = subject{
	noun: "schedule", arg: "NAME", example: "nightly", check: jobhost.CheckSchedule,
	names: func(ctx context.Context, server jobhost.Server) (names []string) {
		list, _ := server.Schedules(ctx)
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names
	},
}

// one returns a command about one schedule.
func (e scheduleEnv) one(verb, short, long string, do func(context.Context, jobhost.Server, string) error) *cobra.Command {
	return scheduleSubject.command(e.env, verb, short, long, do)
}

func (e scheduleEnv) list(ctx context.Context) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	list, err := server.Schedules(ctx)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return jsonLines(e.env, list)
	}
	t := e.newTable("NAME", "WORKER", "DUE", "NEXT", "LAST", "LAST JOB")
	for i := range list {
		s := &list[i]
		next := "paused"
		if !s.Paused {
			next = ""
			if len(s.Next) > 0 {
				next = e.tick(s.Next[0])
			}
		}
		last := ""
		if s.LastTick != nil {
			last = e.tick(*s.LastTick)
		}
		t.row(s.Name, s.Worker, due(s), next, last, s.LastJob)
	}
	t.flush()
	return nil
}

// due says when a schedule is due, as its manifest does.
func due(s *jobhost.Schedule) string {
	if s.Cron == "" {
		return "every " + s.Every.String()
	}
	return s.Cron + " " + s.Timezone
}

// tick shows a tick in the time zone of its schedule, which is how people know it.
func (e scheduleEnv) tick(at time.Time) string {
	if !e.stdout.terminal {
		return at.Format(time.RFC3339)
	}
	return at.Format("Mon 2006-01-02 15:04:05 -07:00") + " (" + e.when(at) + ")"
}

func (e scheduleEnv) show(ctx context.Context, server jobhost.Server, name string) error {
	s, err := server.Schedule(ctx, name)
	if err != nil {
		return err
	}
	return e.print(&s)
}

// turn pauses or resumes a schedule.
func (e scheduleEnv) turn(turn func(jobhost.Scheduler, context.Context, string) (jobhost.Schedule, error)) func(context.Context, jobhost.Server, string) error {
	return func(ctx context.Context, server jobhost.Server, name string) error {
		s, err := turn(server, ctx, name)
		if err != nil {
			return err
		}
		return e.print(&s)
	}
}

func (e scheduleEnv) run(ctx context.Context, server jobhost.Server, name string) error {
	receipt, err := server.RunSchedule(ctx, name)
	if err != nil {
		return err
	}
	if e.wantsJSON() {
		return e.json(receipt)
	}
	t := e.newTable()
	t.row(receipt.ID)
	t.flush()
	return nil
}

func (e scheduleEnv) print(s *jobhost.Schedule) error {
	if e.wantsJSON() {
		return e.json(s)
	}
	t := e.newTable()
	t.field("name", s.Name)
	t.field("description", s.Description)
	t.field("worker", s.Worker)
	t.field("due", due(s))
	if s.Jitter > 0 {
		t.field("jitter", "up to "+s.Jitter.String())
	}
	t.field("catch up", string(s.CatchUp))
	t.field("overlap", string(s.Overlap))
	if s.Paused {
		t.field("paused", e.whenever(s.PausedAt))
	}
	if s.LastTick != nil {
		t.field("last tick", e.tick(*s.LastTick))
	}
	t.field("last job", s.LastJob)
	if s.Waiting > 0 {
		t.field("waiting", strconv.Itoa(s.Waiting)+" for the end of a job")
	}
	t.field("refused", s.Refused)
	for i, at := range s.Next {
		heading := "next"
		if i > 0 {
			heading = " "
		}
		t.field(heading, e.tick(at))
	}
	t.flush()
	return nil
}
