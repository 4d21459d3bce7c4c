package jobhost

import (
	"fmt"
	"time"
)

// Priority orders the tasks of a worker. The zero value means Normal.
type Priority uint8

// The five priorities, from the first to run to the last. Their levels, in
// the manifest, the store and the metrics, are 0 to 4.
const (
	Critical Priority = iota + 1
	High
	Normal
	Low
	Background
)

// Levels is the number of priority levels.
const Levels = 5

var priorityNames = [Levels]string{"critical", "high", "normal", "low", "background"}

// Level returns 0 for Critical to 4 for Background.
func (p Priority) Level() int {
	if p == 0 || p > Background {
		return int(Normal - Critical)
	}
	return int(p - Critical)
}

// PriorityAt returns the priority of a level, clamped to 0..4.
func PriorityAt(level int) Priority {
	return Critical + Priority(min(max(level, 0), Levels-1))
}

// String returns the name: critical, high, normal, low or background.
func (p Priority) String() string { return priorityNames[p.Level()] }

// ParsePriority returns the priority of that name; "" is Normal.
func ParsePriority(name string) (Priority, error) {
	if name == "" {
		return Normal, nil
	}
	for level, n := range priorityNames {
		if n == name {
			return PriorityAt(level), nil
		}
	}
	return 0, &Error{
		Code:    CodeInvalid,
		Field:   "priority",
		Message: fmt.Sprintf("%s is not a priority", clip(name)),
		Hint:    "use critical, high, normal, low or background",
	}
}

// MarshalText implements [encoding.TextMarshaler].
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Priority) UnmarshalText(text []byte) error {
	parsed, err := ParsePriority(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

// Effective returns the priority of a task that has waited for age: one level
// higher for every full aging, Critical at most. If aging is 0 or less, waiting
// changes nothing.
func (p Priority) Effective(age, aging time.Duration) Priority {
	if aging <= 0 || age <= 0 {
		return PriorityAt(p.Level())
	}
	return PriorityAt(p.Level() - int(min(age/aging, Levels)))
}
