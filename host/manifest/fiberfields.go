package manifest

import (
	"time"

	"github.com/jobhost/jobhost"
)

const maxHistory = 1_000_000

func fibersFields() []field[Fibers] {
	type f = field[Fibers]
	return []f{
		{
			name: "max", kind: kindWhole, meaning: "Most fibers that live at the same time, 1 to 100,000. Each has a sandbox of its own, up to its worker's `memory`, which does not count for `host.max_memory`.",
			bind: func(_ string, s *Fibers) setting { return whole(&s.Max, 1, jobhost.MaxFibers) },
		},
		{
			name: "when_full", kind: "`wait` or `fail`", meaning: "What becomes of the start of one more: it waits for its turn, or is answered `exhausted` (429).",
			bind: func(_ string, s *Fibers) setting { return oneOf(&s.WhenFull, WaitWhenFull, FailWhenFull) },
		},
		{
			name: "input", kind: kindWhole, meaning: "Most messages that wait for one fiber, 1 to 1,000,000; over it senders are answered `exhausted` (429), or wait for room if they ask for that.",
			bind: func(_ string, s *Fibers) setting { return whole(&s.Input, 1, 1_000_000) },
		},
		{
			name: "input_bytes", kind: kindSize, meaning: "Most bytes of them, 1KiB to 1GiB; a message that comes alone is taken whatever its size.",
			bind: func(_ string, s *Fibers) setting { return size(&s.InputBytes, 1<<10, 1<<30) },
		},
		{
			name: "replay", kind: kindWhole, meaning: "How many outputs of a fiber are remembered for those who begin to watch it, up to 4MiB together; 0 to 100,000.",
			bind: func(_ string, s *Fibers) setting { return whole(&s.Replay, 0, 100_000) },
		},
		{
			name: "history", kind: kindWhole, meaning: "How many fibers that have ended can still be looked at, with up to 16MiB of results; 1 to 1,000,000.",
			bind: func(_ string, s *Fibers) setting { return whole(&s.History, 1, maxHistory) },
		},
	}
}

func fiberFields() []field[Fiber] {
	type f = field[Fiber]
	return []f{
		{
			name: "id", kind: kindText, auto: "none, must be set", required: true, meaning: "Names the fiber: 1 to 128 of `A-Z a-z 0-9 . _ -`, beginning with a letter or digit.",
			bind: func(_ string, s *Fiber) setting { return textual(&s.ID, "lobby", jobhost.CheckFiber) },
		},
		{
			name: "worker", kind: kindText, auto: "none, must be set", required: true, meaning: "Worker of the fiber, one of the manifest and of the native ABI.",
			bind: func(_ string, s *Fiber) setting { return textual(&s.Worker, "chat-room", jobhost.CheckWorker) },
		},
		{
			name: "entry", kind: kindText, auto: "the worker's", meaning: "Export to call.",
			bind: func(_ string, s *Fiber) setting { return textual(&s.Entry, "room", line(jobhost.MaxEntryBytes)) },
		},
		{
			name: "init", kind: kindText, auto: "empty", meaning: "What the guest finds as its input; up to 1MiB.",
			bind: func(_ string, s *Fiber) setting {
				return textual(&s.Init, "welcome", textOr("init_file"))
			},
		},
		{
			name: "init_file", kind: kindPath, auto: "none", meaning: "File with that, instead of `init`; read when the manifest is. Paths are as those of plugins.",
			bind: func(dir string, s *Fiber) setting {
				p := pathTo(&s.InitFile, dir, "rooms/lobby.json", resolveWithin)
				if s.InitFile == "" {
					p.show = func() string { return "" }
				}
				return p
			},
		},
	}
}

func restartFields() []field[jobhost.RestartPolicy] {
	type f = field[jobhost.RestartPolicy]
	type policy = jobhost.RestartPolicy
	length := func(p *jobhost.Duration, low, high time.Duration) setting {
		return duration((*time.Duration)(p), low, high)
	}
	return []f{
		{
			name: "when", kind: "`never`, `on_failure` or `always`", meaning: "After which ends the fiber is started again, with its waiting messages and its watchers; after an interrupt never.",
			bind: func(_ string, p *policy) setting {
				return oneOf(&p.When, jobhost.RestartNever, jobhost.RestartOnFailure, jobhost.RestartAlways)
			},
		},
		{
			name: "initial", kind: kindDuration, meaning: "Delay before the first restart, 1ms to 1d; it doubles with each further one. A run as long as `within` makes the next one the first again.",
			bind: func(_ string, p *policy) setting { return length(&p.Initial, time.Millisecond, jobhost.MaxTimeout) },
		},
		{
			name: "max", kind: kindDuration, meaning: "Longest delay, up to 3650d; no less than `initial`, which it is if that is longer and nothing is said here.",
			bind: func(_ string, p *policy) setting { return length(&p.Max, time.Millisecond, jobhost.MaxDelay) },
		},
		{
			name: "intensity", kind: kindWhole, meaning: "How many restarts there may be `within` a time; the fiber fails permanently at the next one. 1 to 1,000,000.",
			bind: func(_ string, p *policy) setting { return whole(&p.Intensity, 1, 1_000_000) },
		},
		{
			name: "within", kind: kindDuration, meaning: "That time; 1s to 3650d.",
			bind: func(_ string, p *policy) setting { return length(&p.Within, time.Second, jobhost.MaxDelay) },
		},
	}
}
