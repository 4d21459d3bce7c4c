package wasiabi

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost/runtime/hostcall"
)

func envFunctions() []Function {
	return []Function{
		define("args_get", "argv argv_buf", argsGet),
		define("args_sizes_get", "argc argv_buf_size", argsSizesGet),
		define("environ_get", "environ environ_buf", environGet),
		define("environ_sizes_get", "environc environ_buf_size", environSizesGet),
	}
}

// args_get(argv, argv_buf) writes the arguments and pointers to them.
func argsGet(s *System, m memory, a args) Errno {
	return m.putStrings(a.u32(0), a.u32(1), s.arguments())
}

// args_sizes_get(argc, argv_buf_size) returns how much args_get writes.
func argsSizesGet(s *System, m memory, a args) Errno {
	return m.putSizes(a.u32(0), a.u32(1), s.arguments())
}

// environ_get(environ, environ_buf) writes the environment and pointers to it.
func environGet(s *System, m memory, a args) Errno {
	return m.putStrings(a.u32(0), a.u32(1), s.environ())
}

// environ_sizes_get(environc, environ_buf_size) returns how much environ_get writes.
func environSizesGet(s *System, m memory, a args) Errno {
	return m.putSizes(a.u32(0), a.u32(1), s.environ())
}

func (s *System) arguments() []string {
	return append([]string{s.at.Worker}, s.args...)
}

func (s *System) environ() []string {
	if s.mode != Command || s.bareEnv {
		return s.ownEnv
	}
	if s.env == nil {
		s.env = slices.Concat(s.ownEnv, Environ(s.at))
	}
	return s.env
}

// Environ returns the environment variables of a command that describe its job, as NAME=value:
//
//	JOBHOST_JOB_ID  JOBHOST_TASK  JOBHOST_TASKS  JOBHOST_ATTEMPT
//	JOBHOST_PRIORITY  JOBHOST_WORKER  JOBHOST_TRACE
//	JOBHOST_LABEL_NAME  JOBHOST_CONFIG_NAME  JOBHOST_SECRET_NAME
//
// Names are in upper case, with _ for anything but ASCII letters and digits. If
// two become the same, the first in byte order counts. A value with a NUL can't
// be represented and is left out.
func Environ(at *hostcall.Attempt) []string {
	env := []string{
		"JOBHOST_JOB_ID=" + at.Job,
		"JOBHOST_TASK=" + strconv.Itoa(at.Task),
		"JOBHOST_TASKS=" + strconv.Itoa(at.Tasks),
		"JOBHOST_ATTEMPT=" + strconv.Itoa(at.Number),
		"JOBHOST_PRIORITY=" + at.Priority.String(),
		"JOBHOST_WORKER=" + at.Worker,
		"JOBHOST_TRACE=" + at.Trace,
	}
	env = appendVariables(env, "JOBHOST_LABEL_", at.Labels)
	env = appendVariables(env, "JOBHOST_CONFIG_", at.Config)
	return appendVariables(env, "JOBHOST_SECRET_", at.Secrets)
}

func appendVariables(env []string, prefix string, values map[string]string) []string {
	seen := make(map[string]bool, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := prefix + strings.Map(variableRune, key)
		if value := values[key]; !seen[name] && strings.IndexByte(value, 0) < 0 {
			seen[name] = true
			env = append(env, name+"="+value)
		}
	}
	return env
}

func variableRune(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return r
	}
	return '_'
}

// putSizes writes the number of strings, and their total length with a NUL
// after each.
func (m memory) putSizes(count, size uint32, list []string) Errno {
	if e := m.put32(count, uint32(len(list))); e != OK {
		return e
	}
	return m.put32(size, uint32(stringsSize(list)))
}

// putStrings writes the strings to buf and the address of each to table.
func (m memory) putStrings(table, buf uint32, list []string) Errno {
	pointers, e := m.view(table, uint64(len(list))*4)
	if e != OK {
		return e
	}
	text, e := m.view(buf, stringsSize(list))
	if e != OK {
		return e
	}
	at := 0
	for i, s := range list {
		binary.LittleEndian.PutUint32(pointers[i*4:], buf+uint32(at))
		at += copy(text[at:], s)
		text[at] = 0
		at++
	}
	return OK
}

func stringsSize(list []string) uint64 {
	size := uint64(len(list))
	for _, s := range list {
		size += uint64(len(s))
	}
	return size
}
