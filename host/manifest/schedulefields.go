package manifest

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/schedule"
)

const maxExpression = 256 // bytes of a cron expression

func scheduleFields() []field[Schedule] { //nolint:revive // it is a table, however long
	type f = field[Schedule]
	return []f{
		{
			name: "name", kind: kindText, auto: "none, must be set", required: true, meaning: "Name of the schedule: 1 to 63 of `a-z 0-9 . _ -`, beginning with a letter or digit.",
			bind: func(_ string, s *Schedule) setting { return textual(&s.Name, "nightly", jobhost.CheckSchedule) },
		},
		{
			name: "description", kind: kindText, auto: "empty", meaning: "What the schedule is for, for people; up to 1KiB.",
			bind: func(_ string, s *Schedule) setting {
				return textual(&s.Description, "sums up the day", line(maxTextOfUser))
			},
		},
		{
			name: "cron", kind: "cron expression", auto: "none", meaning: "When it is due: minute, hour, day of month, month, day of week, or `@hourly`, `@daily` and so on. Either this or `every` must be set.",
			bind: func(_ string, s *Schedule) setting { return textual(&s.Cron, "30 2 * * *", line(maxExpression)) },
		},
		{
			name: "timezone", kind: "name of a time zone", auto: "`UTC`", meaning: "Where `cron` is the time of day, such as `Europe/Berlin`.",
			bind: func(_ string, s *Schedule) setting {
				return textual(&s.Timezone, "Europe/Berlin", line(maxExpression))
			},
		},
		{
			name: "every", kind: kindDuration, auto: "none", meaning: "When it is due: at all multiples of this time since 1970 UTC; whole seconds, 1s to 366d.",
			bind: func(_ string, s *Schedule) setting {
				return given(&s.Every, schedule.MinEvery, schedule.MaxEvery)
			},
		},
		{
			name: "worker", kind: kindText, auto: "none, must be set", required: true, meaning: "Worker of the jobs, one of the manifest.",
			bind: func(_ string, s *Schedule) setting { return textual(&s.Worker, "hello", jobhost.CheckWorker) },
		},
		{
			name: "payload", kind: kindText, auto: "empty", meaning: "Payload of the jobs.",
			bind: func(_ string, s *Schedule) setting { return textual(&s.Payload, "hello", textOr("payload_file")) },
		},
		{
			name: "payload_file", kind: kindPath, auto: "none", meaning: "File with the payload of the jobs, instead of `payload`; read when the manifest is. Paths are as those of plugins.",
			bind: func(dir string, s *Schedule) setting {
				p := pathTo(&s.PayloadFile, dir, "payloads/hello.json", resolveWithin)
				if s.PayloadFile == "" {
					p.show = func() string { return "" }
				}
				return p
			},
		},
		{
			name: "content_type", kind: kindText, auto: "none", meaning: "What the payload is, such as `application/json`.",
			bind: func(_ string, s *Schedule) setting {
				return textual(&s.ContentType, "application/json", line(jobhost.MaxContentType))
			},
		},
		{
			name: "entry", kind: kindText, auto: "the worker's", meaning: "Export to call.",
			bind: func(_ string, s *Schedule) setting { return textual(&s.Entry, "run", line(jobhost.MaxEntryBytes)) },
		},
		{
			name: "priority", kind: kindPriority, meaning: "Priority of the jobs.",
			bind: func(_ string, s *Schedule) setting { return priority(&s.Priority) },
		},
		{
			name: "tasks", kind: kindWhole, meaning: "Tasks of each job, 1 to 10,000.",
			bind: func(_ string, s *Schedule) setting { return whole(&s.Tasks, 1, jobhost.MaxTasks) },
		},
		{
			name: "max_attempts", kind: kindWhole, auto: "the worker's", meaning: "Attempts of each task, the first included; 1 to 1000.",
			bind: func(_ string, s *Schedule) setting { return ifSet(whole(&s.MaxAttempts, 1, jobhost.MaxAttempts), "0") },
		},
		{
			name: "timeout", kind: kindDuration, auto: "the worker's", meaning: "Longest time of one attempt; 1ms to 1d.",
			bind: func(_ string, s *Schedule) setting { return given(&s.Timeout, time.Millisecond, jobhost.MaxTimeout) },
		},
		{
			name: "jitter", kind: kindDuration, meaning: "Delays each job by up to this time, always the same for one tick; up to 1d, and no more than `every`.",
			bind: func(_ string, s *Schedule) setting { return duration(&s.Jitter, 0, schedule.MaxJitter) },
		},
		{
			name: "catch_up", kind: "`none`, `one` or `all`", meaning: "What becomes of ticks that came while the host was down or the queue full: they are missed, but for those of the last minute; the latest makes a job; or each does.",
			bind: func(_ string, s *Schedule) setting {
				return oneOf(&s.CatchUp, jobhost.CatchUpNone, jobhost.CatchUpOne, jobhost.CatchUpAll)
			},
		},
		{
			name: "catch_up_limit", kind: kindWhole, meaning: "Most ticks that make a job with `all`, the latest ones; 1 to 1000.",
			bind: func(_ string, s *Schedule) setting { return whole(&s.CatchUpLimit, 1, schedule.MaxCatchUp) },
		},
		{
			name: "overlap", kind: "`allow`, `skip` or `queue`", meaning: "What becomes of a tick while a job of the schedule is open: it makes a job too; none; or one once that job has ended, up to 100 ticks in their order.",
			bind: func(_ string, s *Schedule) setting {
				return oneOf(&s.Overlap, jobhost.OverlapAllow, jobhost.OverlapSkip, jobhost.OverlapQueue)
			},
		},
	}
}

// ifSet leaves a setting out of what is shown while it has the value that stands
// for none.
func ifSet(s setting, none string) setting {
	return setting{set: s.set, show: func() string {
		if shown := s.show(); strings.Trim(shown, `"`) != none {
			return shown
		}
		return ""
	}}
}

// given is a duration that need not be given.
func given(p *time.Duration, low, high time.Duration) setting {
	return ifSet(duration(p, low, high), "0s")
}

func priority(p *jobhost.Priority) setting {
	name := p.String()
	s := oneOf(&name, "critical", "high", "normal", "low", "background")
	return setting{
		set: func(v any) error {
			if err := s.set(v); err != nil {
				return err
			}
			return p.UnmarshalText([]byte(name))
		},
		show: func() string { return quote(p.String()) },
	}
}

// textOr takes any text; what is none belongs into a file.
func textOr(file string) func(string) error {
	return func(s string) error {
		if !utf8.ValidString(s) {
			return wrong("put it into a file, and name that in "+file, "the text is not valid UTF-8")
		}
		return nil
	}
}
