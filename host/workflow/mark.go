package workflow

import (
	"strconv"
	"strings"

	"github.com/jobhost/jobhost/host/workflow/machine"
)

// A mark says what a job is for:
//
//	s12.1   the first run of step 12
//	f12.1   the first of its fallback worker
//	ws12.1  the timer at which the sleep of that run ends
//	lf12.1  the timer of the limit of that run; step -1 is the workflow
func markOf(r machine.Run) string {
	b := make([]byte, 0, 16)
	if r.Fallback {
		b = append(b, 'f')
	} else {
		b = append(b, 's')
	}
	b = append(strconv.AppendInt(b, int64(r.Step), 10), '.')
	return string(strconv.AppendUint(b, uint64(r.Number), 10))
}

func timerMark(t machine.Timer) string {
	if t.Purpose == machine.Wake {
		return "w" + markOf(t.Run)
	}
	return "l" + markOf(t.Run)
}

// readMark parses a mark; the purpose is 0 for that of a step.
func readMark(mark string) (machine.Timer, bool) {
	var t machine.Timer
	switch {
	case strings.HasPrefix(mark, "w"):
		t.Purpose, mark = machine.Wake, mark[1:]
	case strings.HasPrefix(mark, "l"):
		t.Purpose, mark = machine.Limit, mark[1:]
	}
	if mark == "" || mark[0] != 's' && mark[0] != 'f' {
		return t, false
	}
	t.Fallback = mark[0] == 'f'
	step, number, found := strings.Cut(mark[1:], ".")
	i, err := strconv.Atoi(step)
	n, err2 := strconv.ParseUint(number, 10, 32)
	t.Step, t.Number = i, uint32(n)
	return t, found && err == nil && err2 == nil
}
