package manifest

import (
	"strings"
	"time"
	"unicode"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// field is a setting of a section that is a T. These tables are what the
// manifest can say: they are what reading, defaults, `manifest show` and
// docs/manifest.md are made from.
type field[T any] struct {
	name string
	kind string // of value, for the docs
	// auto says what the default is when it follows from something else, or
	// that there is none; empty = it is what defaultHost and defaultWorker say.
	auto     string
	required bool
	meaning  string
	bind     func(dir string, t *T) setting
}

// The kinds of values, as docs/manifest.md names them.
const (
	kindText     = "text"
	kindSize     = "size"
	kindDuration = "duration"
	kindWhole    = "whole number"
	kindNumber   = "number"
	kindFlag     = "true or false"
	kindPath     = "path"
	kindKept     = "duration or `forever`"
	kindTexts    = "list of text"
	kindPriority = "`critical`, `high`, `normal`, `low` or `background`"
)

const (
	maxPoolSize   = 4096
	maxQueue      = 100_000_000
	maxMemory     = 4<<30 - 1<<20 // 65,536 pages are one more than a runtime can count in 32 bits
	maxRunning    = 1_000_000
	maxTextOfUser = 1024
	maxArgs       = 1000
	maxMounts     = 100
	maxBuild      = 4096
	maxGrants     = 1000
	maxProcesses  = 64
	maxFeatures   = 16
)

func hostFields() []field[Host] { //nolint:revive // it is a table, however long
	type f = field[Host]
	return []f{
		{
			name: "listen", kind: "host:port", meaning: "Address of the HTTP API. Port 0 is any free one. Anything but loopback needs `behind_proxy`.",
			bind: func(_ string, h *Host) setting {
				return textual(&h.Listen, "127.0.0.1:7070", func(s string) error { return CheckListen(s, true) })
			},
		},
		{
			name: "behind_proxy", kind: kindFlag, meaning: "A proxy in front does TLS, so `listen` may be an address that other machines reach.",
			bind: func(_ string, h *Host) setting { return boolean(&h.BehindProxy) },
		},
		{
			name: "open_reads", kind: kindFlag, meaning: "Requests from this machine, by any of its users, read jobs, payloads and results without the token. Not allowed together with `behind_proxy`.",
			bind: func(_ string, h *Host) setting { return boolean(&h.OpenReads) },
		},
		{
			name: "open_metrics", kind: kindFlag, auto: "`true`, and `false` with `behind_proxy`", meaning: "`/metrics` needs no token.",
			bind: func(_ string, h *Host) setting { return boolean(&h.OpenMetrics) },
		},
		{
			name: "allowed_hosts", kind: kindTexts, meaning: "Names to accept in the `Host` header besides those of `listen`, without port; at most 100.",
			bind: func(_ string, h *Host) setting { return texts(&h.AllowedHosts, maxAllowedHosts, allowedHost) },
		},
		{
			name: "store", kind: "`sqlite:FOLDER`, `postgres://…` or `mem:`", meaning: "Where jobs are kept. Hosts that name the same PostgreSQL are a [cluster](cluster.md): `postgres://USER@HOST/DATABASE`, without the password. `mem:` keeps them in memory: they are gone when the host ends.",
			bind: func(dir string, h *Host) setting { return store(dir, &h.Store) },
		},
		{
			name: "states", kind: "`store` or `firestore:PROJECT`", meaning: "Where the [states of tasks](task-states.md) are kept: with the jobs, or in [Firestore](firestore.md). A slash and a name behind the project choose another database than the default one.",
			bind: func(_ string, h *Host) setting { return states(&h.States) },
		},
		{
			name: "durability", kind: "`strict` or `relaxed`", meaning: "When a write is acknowledged: once it survives power loss, or once the operating system has it.",
			bind: func(_ string, h *Host) setting { return oneOf(&h.Durability, Strict, Relaxed) },
		},
		{
			name: "data", kind: kindPath, auto: "the store's folder; `./data` with `mem:` and PostgreSQL", meaning: "Folder for what is not in the store: the compile cache and the token. Each host has its own.",
			bind: func(dir string, h *Host) setting { return pathTo(&h.Data, dir, "./data", resolve) },
		},
		{
			name: "token_file", kind: kindPath, auto: "`token` in `data`", meaning: "File of the API's token. It is made at the first start, readable by its owner only.",
			bind: func(dir string, h *Host) setting { return pathTo(&h.TokenFile, dir, "./data/token", resolve) },
		},
		{
			name: "max_running", kind: kindWhole, meaning: "Maximum number of concurrent tasks across all workers; 0 = no limit beyond the pools.",
			bind: func(_ string, h *Host) setting { return whole(&h.MaxRunning, 0, maxRunning) },
		},
		{
			name: "max_memory", kind: kindSize, auto: "three quarters of the machine's memory", meaning: "Memory of all sandboxes that run tasks at the same time, each counted with its worker's `memory`, that of an Extism plugin once for each module and once for its kernel, and 24MiB for the stack of its calls; over it tasks wait. 64MiB to 16TiB.",
			bind: func(_ string, h *Host) setting { return size(&h.MaxMemory, 64<<20, 16<<40) },
		},
		{
			name: "min_free", kind: kindSize, meaning: "Free space that the disk of the store must have for new jobs to be taken; below it they are answered `unavailable` (503), and those that are there go on. 0B to 1TiB; 0B = it is not looked at.",
			bind: func(_ string, h *Host) setting { return size(&h.MinFree, 0, 1<<40) },
		},
		{
			name: "max_payload", kind: kindSize, meaning: "Largest payload of a job that comes within its submit, 1B to 64MiB; `payload.max` is for those that are uploaded before.",
			bind: func(_ string, h *Host) setting { return size(&h.MaxPayload, 1, 64<<20) },
		},
		{
			name: "shutdown_timeout", kind: kindDuration, meaning: "How long running tasks may go on after SIGTERM before they are put back, up to 1h; `0s` = not at all.",
			bind: func(_ string, h *Host) setting { return duration(&h.ShutdownTimeout, 0, time.Hour) },
		},
		{
			name: "cancel_grace", kind: kindDuration, meaning: "How long a cancelled attempt may go on after it was notified, up to 1h; `0s` = not at all.",
			bind: func(_ string, h *Host) setting { return duration(&h.CancelGrace, 0, time.Hour) },
		},
		{
			name: "aging", kind: "duration or `off`", meaning: "A waiting task rises by one level of priority each time this has passed, 1ms to 1d.",
			bind: func(_ string, h *Host) setting {
				return durationOr("off", &h.Aging, time.Millisecond, 24*time.Hour)
			},
		},
		{
			name: "trust", kind: "`all` or `none`", meaning: "Whether workers that don't say where their `sandbox` is run in the process of the host, or in processes of their own.",
			bind: func(_ string, h *Host) setting { return oneOf(&h.Trust, TrustAll, TrustNone) },
		},
		{
			name: "log_level", kind: "`debug`, `info`, `warn` or `error`", meaning: "The least important lines that are logged.",
			bind: func(_ string, h *Host) setting { return logLevel(&h.LogLevel) },
		},
		{
			name: "log_format", kind: "`text` or `json`", meaning: "How log lines are written.",
			bind: func(_ string, h *Host) setting { return oneOf(&h.LogFormat, "text", "json") },
		},
	}
}

func workerFields() []field[Worker] { //nolint:revive // it is a table, however long
	type f = field[Worker]
	return []f{
		{
			name: "plugin", kind: kindPath, auto: "none, must be set", required: true, meaning: "The WebAssembly module, up to 32MiB, or with `abi = \"process\"` the executable, up to 256MiB. Relative paths and the links on their way stay below the manifest's folder; anything else must be written absolute.",
			bind: func(dir string, w *Worker) setting {
				return pathTo(&w.Path, dir, "plugins/hello.wasm", resolveWithin)
			},
		},
		{
			name: "sha256", kind: "64 hex digits", auto: "not checked; must be set with `abi = \"process\"`", meaning: "SHA-256 that the plugin must have, when the manifest is read and when the plugin is loaded. `jobhost dev` does not ask for that of a plugin that it builds.",
			bind: func(_ string, w *Worker) setting { return pin(&w.SHA256) },
		},
		{
			name: "build", kind: "command line", auto: "none", meaning: "Makes `plugin` from its source. `jobhost dev`, and nothing else, runs it with `sh -c` in the plugin's folder when a file there changes; up to 4KiB.",
			bind: func(_ string, w *Worker) setting { return textual(&w.Build, "make", line(maxBuild)) },
		},
		{
			name: "description", kind: kindText, auto: "empty", meaning: "What the worker does, for people; up to 1KiB.",
			bind: func(_ string, w *Worker) setting { return textual(&w.Description, "counts words", line(maxTextOfUser)) },
		},
		{
			name: "abi", kind: "`auto`, `jobhost`, `wasi`, `extism` or `process`", meaning: "How the host talks to the plugin; `auto` looks at what the module imports and exports. `process` is for [native executables](processes.md), which `auto` never takes a plugin for.",
			bind: func(_ string, w *Worker) setting {
				return oneOf(&w.ABI, append(append([]string{runtime.ABIAuto}, runtime.ABIs()...), runtime.ABIProcess)...)
			},
		},
		{
			name: "sandbox", kind: "`inline` or `process`", auto: "`inline`; `process` with `host.trust = \"none\"`", meaning: "Where the module runs: in the process of the host, or in [processes of its own](processes.md#sandboxes), which are confined and whose end is not the host's.",
			bind: func(_ string, w *Worker) setting { return oneOf(&w.Sandbox, runtime.Placements()...) },
		},
		{
			name: "processes", kind: kindWhole, meaning: "How many processes run the plugin, if it runs in such; the slots of its pool are spread over them. 1 to 64.",
			bind: func(_ string, w *Worker) setting { return whole(&w.Processes, 1, maxProcesses) },
		},
		{
			name: "isolation", kind: "`job`, `instance` or `fresh`", meaning: "What a sandbox keeps between jobs: nothing, by putting it back to its beginning; everything, for plugins that keep caches; or nothing, by initialising another one.",
			bind: func(_ string, w *Worker) setting { return oneOf(&w.Isolation, runtime.Isolations()...) },
		},
		{
			name: "features", kind: "list of `simd`", auto: "none", meaning: "What the module may use of WebAssembly that is off by default, see [sandbox.md](sandbox.md#features). `simd` are vectors of 128 bits; `jobhost worker inspect` says whether a module needs them.",
			bind: func(_ string, w *Worker) setting { return features(&w.Features) },
		},
		{
			name: "entry", kind: kindText, auto: "the ABI's own", meaning: "Export to call for jobs that name none.",
			bind: func(_ string, w *Worker) setting { return textual(&w.Entry, "run", line(jobhost.MaxEntryBytes)) },
		},
		{
			name: "pool_size", kind: kindWhole, auto: "number of CPUs; 32 times that with `sandbox = \"process\"`", meaning: "Tasks of this worker that run at the same time, each in its own sandbox; 1 to 4096.",
			bind: func(_ string, w *Worker) setting { return whole(&w.PoolSize, 1, maxPoolSize) },
		},
		{
			name: "queue_capacity", kind: kindWhole, meaning: "Tasks that may wait; further submits and retries are answered `exhausted` (429). 1 to 100,000,000.",
			bind: func(_ string, w *Worker) setting { return whole(&w.QueueCapacity, 1, maxQueue) },
		},
		{
			name: "rate_limit", kind: "rate", auto: "no limit", meaning: "How often tasks may begin, such as `100/s`, `30/m` or `1/10s`. Tasks over it are held until it is their time. It holds over a restart; after a crash there is no burst at first.",
			bind: func(_ string, w *Worker) setting { return rate(&w.RateLimit) },
		},
		{
			name: "rate_burst", kind: kindWhole, auto: "what `rate_limit` allows in 100ms, at least 1", meaning: "Tasks that may begin at once after a rest; 1 to 1,000,000.",
			bind: func(_ string, w *Worker) setting { return wholeOrLeft(&w.RateBurst, jobhost.MaxRateCount) },
		},
		{
			name: "concurrency_per_key", kind: kindWhole, meaning: "Tasks of jobs with one `concurrency_key` that run at the same time; 0 = only `pool_size` bounds them.",
			bind: func(_ string, w *Worker) setting { return whole(&w.ConcurrencyPerKey, 0, maxPoolSize) },
		},
		{
			name: "timeout", kind: kindDuration, meaning: "Longest time of one attempt, unless the job says otherwise; 1ms to 1d.",
			bind: func(_ string, w *Worker) setting {
				return duration(&w.Limits.Timeout, time.Millisecond, jobhost.MaxTimeout)
			},
		},
		{
			name: "start_timeout", kind: kindDuration, meaning: "Longest time to make a sandbox, the module's initialisation included; 1ms to 1h.",
			bind: func(_ string, w *Worker) setting {
				return duration(&w.Limits.StartTime, time.Millisecond, time.Hour)
			},
		},
		{
			name: "memory", kind: kindSize, auto: "`64MiB`; `1GiB` with `abi = \"process\"`", meaning: "Linear memory of one sandbox, 64KiB to 4095MiB; rounded up to whole 64KiB. Of a native plugin: what each of its processes may write to.",
			bind: func(_ string, w *Worker) setting { return size(&w.Limits.MemoryBytes, 64<<10, maxMemory) },
		},
		{
			name: "compile_memory", kind: kindSize, meaning: "Memory that compiling the module may take, by an estimate that is made before, see [sandbox.md](sandbox.md#compiling); the time that it may take grows with it. 64MiB to 16GiB.",
			bind: func(_ string, w *Worker) setting { return size(&w.Limits.CompileBytes, 64<<20, 16<<30) },
		},
		{
			name: "fuel", kind: kindWhole, meaning: "Work of one attempt, about one unit for each pass of a loop and each call, see [sandbox.md](sandbox.md#fuel); 0 = only `timeout` bounds it. The same work costs the same fuel each time.",
			bind: func(_ string, w *Worker) setting { return whole(&w.Limits.Fuel, 0, 1<<62) },
		},
		{
			name: "args", kind: kindTexts, auto: "none", meaning: "Arguments of a WASI command or a native plugin, after its name; at most 1000.",
			bind: func(_ string, w *Worker) setting { return texts(&w.System.Args, maxArgs, argument) },
		},
		{
			name: "job_env", kind: kindFlag, meaning: "Whether a [WASI command](wasi.md#environment) finds the variables `JOBHOST_…` in its environment, besides those of `[worker.NAME.env]`.",
			bind: func(_ string, w *Worker) setting { return jobEnv(&w.System.BareEnv) },
		},
		{
			name: "mounts", kind: "list of `FOLDER:PATH` or `FOLDER:PATH:rw`", auto: "none", meaning: "Folders that the module may read, by WASI, or with `:rw` change; PATH is where it finds them. Nothing outside of a folder can be reached from it.",
			bind: func(dir string, w *Worker) setting { return mounts(dir, &w.System.Mounts) },
		},
		{
			name: "clock", kind: "`coarse` or `precise`", meaning: "Whether the module's clocks move in steps of 1 ms or are as exact as the host's, which helps code that spies on its neighbours.",
			bind: func(_ string, w *Worker) setting { return clock(&w.System.PreciseClock) },
		},
		{
			name: "output", kind: kindSize, meaning: "Result of one attempt, 1B to 16GiB. Over `payload.threshold` it leaves the memory of the host.",
			bind: func(_ string, w *Worker) setting { return size(&w.Limits.OutputBytes, 1, 16<<30) },
		},
		{
			name: "log", kind: kindSize, meaning: "Log of one attempt, 64B to 16MiB. Lines beyond it are dropped and counted.",
			bind: func(_ string, w *Worker) setting { return size(&w.Limits.LogBytes, 64, 16<<20) },
		},
		{
			name: "log_line", kind: kindSize, auto: "`8KiB`, or `log` if that is less", meaning: "One line of the log, 64B to 1MiB and no more than `log`. Longer ones are cut.",
			bind: func(_ string, w *Worker) setting { return size(&w.Limits.LineBytes, 64, 1<<20) },
		},
		{
			name: "submit", kind: "list of workers", auto: "none", meaning: "Workers that the module may submit jobs to. Its own is not among them unless it is named.",
			bind: func(_ string, w *Worker) setting { return texts(&w.MaySubmit, maxGrants, grantee) },
		},
		{
			name: "watch", kind: "list of workers", auto: "none", meaning: "Workers whose jobs' states the module may see, besides those of its own job.",
			bind: func(_ string, w *Worker) setting { return texts(&w.MayWatch, maxGrants, grantee) },
		},
		{
			name: "kv_quota", kind: kindSize, meaning: "What the keys and values of the worker may take together, each key counted with 40B besides; 1KiB to 1TiB. Of an Extism plugin no more than 1MiB counts.",
			bind: func(_ string, w *Worker) setting { return size(&w.KVQuota, 1<<10, 1<<40) },
		},
	}
}

// retryFields has no ranges: [jobhost.RetryPolicy.Check] does.
func retryFields() []field[jobhost.RetryPolicy] {
	type f = field[jobhost.RetryPolicy]
	type policy = jobhost.RetryPolicy
	free := func(p *time.Duration) setting { return duration(p, -1<<63, 1<<63-1) }
	return []f{
		{
			name: "max_attempts", kind: kindWhole, meaning: "Attempts in all, the first included; 1 to 1000.",
			bind: func(_ string, p *policy) setting { return whole(&p.MaxAttempts, -1<<31, 1<<31-1) },
		},
		{
			name: "backoff", kind: "`exponential`, `linear` or `constant`", meaning: "How the delay before attempt n ≥ 2 grows: `initial · multiplier^(n−2)`, `initial + increment · (n−2)`, or `initial`.",
			bind: func(_ string, p *policy) setting {
				return oneOf(&p.Backoff, jobhost.BackoffExponential, jobhost.BackoffLinear, jobhost.BackoffConstant)
			},
		},
		{
			name: "initial", kind: kindDuration, meaning: "Delay before the second attempt, up to 1d and no more than `max`.",
			bind: func(_ string, p *policy) setting { return free(&p.Initial) },
		},
		{
			name: "multiplier", kind: kindNumber, meaning: "For exponential backoff, 1 to 100.",
			bind: func(_ string, p *policy) setting { return number(&p.Multiplier) },
		},
		{
			name: "increment", kind: kindDuration, meaning: "For linear backoff, up to 1d.",
			bind: func(_ string, p *policy) setting { return free(&p.Increment) },
		},
		{
			name: "max", kind: kindDuration, meaning: "Longest delay, before the jitter; up to 30d.",
			bind: func(_ string, p *policy) setting { return free(&p.Max) },
		},
		{
			name: "jitter", kind: kindNumber, meaning: "Spreads delays by ± this part of them, 0 to 1.",
			bind: func(_ string, p *policy) setting { return number(&p.Jitter) },
		},
	}
}

func breakerFields() []field[jobhost.BreakerPolicy] {
	type f = field[jobhost.BreakerPolicy]
	type policy = jobhost.BreakerPolicy
	return []f{
		{
			name: "key", kind: kindText, auto: "the worker's name", meaning: "Workers with the same key share one breaker; up to 256 bytes.",
			bind: func(_ string, p *policy) setting { return textual(&p.Key, "payments", breakerKey) },
		},
		{
			name: "failures", kind: kindWhole, meaning: "Failures in a row that open it; 1 to 1000.",
			bind: func(_ string, p *policy) setting { return whole(&p.Failures, 1, 1000) },
		},
		{
			name: "timeout", kind: kindDuration, meaning: "How long it stays open before some tasks try again; 1ms to 1d.",
			bind: func(_ string, p *policy) setting { return duration(&p.Timeout, time.Millisecond, 24*time.Hour) },
		},
		{
			name: "probes", kind: kindWhole, meaning: "How many of those must succeed before it closes, and how many run at once; 1 to 1000.",
			bind: func(_ string, p *policy) setting { return whole(&p.Probes, 1, 1000) },
		},
		{
			name: "when_open", kind: "`hold` or `fail`", meaning: "Whether tasks wait while it is open, without costing an attempt, or their attempts fail at once.",
			bind: func(_ string, p *policy) setting {
				return oneOf(&p.WhenOpen, jobhost.HoldWhenOpen, jobhost.FailWhenOpen)
			},
		},
	}
}

func retentionFields() []field[jobhost.Retention] {
	type f = field[jobhost.Retention]
	type retention = jobhost.Retention
	kept := func(p *time.Duration) setting {
		return durationOr("forever", p, time.Millisecond, jobhost.MaxRetention)
	}
	return []f{
		{
			name: "succeeded", kind: kindKept, meaning: "How long a job is kept after it succeeded, with its results and logs.",
			bind: func(_ string, r *retention) setting { return kept(&r.Succeeded) },
		},
		{
			name: "cancelled", kind: kindKept, meaning: "How long after it was cancelled.",
			bind: func(_ string, r *retention) setting { return kept(&r.Cancelled) },
		},
		{
			name: "dead", kind: kindKept, meaning: "How long after a task of it died.",
			bind: func(_ string, r *retention) setting { return kept(&r.Dead) },
		},
		{
			name: "max_entries", kind: kindWhole, meaning: "Most dead tasks that are kept; when one more dies, the oldest jobs with dead tasks are removed. 0 = no bound.",
			bind: func(_ string, r *retention) setting { return whole(&r.MaxEntries, 0, maxQueue) },
		},
	}
}

// breakerKey checks a key, which is shown to people.
func breakerKey(s string) error {
	if s == "" {
		return wrong("leave it out to have one of its own", "it is empty")
	}
	return line(jobhost.MaxKeyBytes)(s)
}

// names returns the names of the fields.
func names[T any](fields []field[T]) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}

// The names, for hints.
var (
	hostNames   = names(hostFields())
	workerNames = names(workerFields())
	retryNames  = names(retryFields())
	stepNames   = names(stepFields())

	retentionNames = names(retentionFields())
)

// line checks text that is shown to people on one line.
func line(most int) func(string) error {
	return func(s string) error {
		if len(s) > most {
			return wrong("", "text of %d bytes is longer than %d", len(s), most)
		}
		if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			return wrong("", "%s has a character that cannot be shown", text.Quote(s, text.Short))
		}
		return nil
	}
}

func pin(p *string) setting {
	return parsed(strings.Repeat("0", 64),
		func(s string) error {
			hex := strings.ToLower(s)
			if len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
				return wrong("sha256sum FILE prints it", "%s is not a SHA-256 of 64 hex digits", text.Quote(s, text.Short))
			}
			*p = hex
			return nil
		},
		func() string { return *p })
}
