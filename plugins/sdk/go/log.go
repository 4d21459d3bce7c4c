package jobhost

// Level says how much a line of the log matters. The numbers are those of
// log/slog, whose levels can be converted.
type Level int32

// The levels. Those in between are rounded down.
const (
	LevelDebug Level = -4
	LevelInfo  Level = 0
	LevelWarn  Level = 4
	LevelError Level = 8
)

// Log writes a line to the job's log. Lines below the worker's level are
// dropped. What a worker writes to standard output and standard error also goes
// to the log, line by line at info and at warn. For log/slog see package
// joblog.
func (j *Job) Log(level Level, text string) { j.host.Log(level, text) }

// LogLevel returns the lowest level that is kept, for workers that want to
// avoid formatting other lines.
func (j *Job) LogLevel() Level { return j.host.LogLevel() }

// Running is whichever job is running when it is used, for what is set up
// before there is one, such as the log handler of a library. Outside wasm there
// is none: only Log and LogLevel work, and write to standard error.
var Running = new(Job)
