package hostcall

import (
	"strconv"
	"strings"
)

// MaxKeyBytes bounds the key of an Info call.
const MaxKeyBytes = 512

// Info returns what the guest may know about its environment:
//
//	job.id  job.task  job.tasks  job.attempt  job.priority  worker  trace
//	config.NAME  secret.NAME  label.NAME  child.NUMBER
//
// Numbers are in decimal, the priority is its name. A missing config value or
// label and an unknown key are [ErrNotFound]. A secret that isn't granted is
// [ErrDenied], whether it exists or not. The numbers of children are those that
// Submit returned.
func (a *Attempt) Info(key string) (string, Errno) {
	if group, name, ok := strings.Cut(key, "."); ok && group != "job" {
		return a.lookUp(group, name)
	}
	switch key {
	case "job.id":
		return a.Job, OK
	case "job.task":
		return strconv.Itoa(a.Task), OK
	case "job.tasks":
		return strconv.Itoa(a.Tasks), OK
	case "job.attempt":
		return strconv.Itoa(a.Number), OK
	case "job.priority":
		return a.Priority.String(), OK
	case "worker":
		return a.Worker, OK
	case "trace":
		return a.Trace, OK
	}
	return "", ErrNotFound
}

func (a *Attempt) lookUp(group, name string) (string, Errno) {
	if far := a.far(); far != nil {
		if value, ok := a.Config[name]; ok && group == "config" {
			return value, OK
		}
		return far.Info(group + "." + name)
	}
	values, missing := map[string]string(nil), ErrNotFound
	switch group {
	case "child":
		if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= len(a.submitted) {
			return a.submitted[n-1].id, OK
		}
	case "config":
		values = a.Config
	case "label":
		values = a.Labels
	case "secret":
		values, missing = a.Secrets, ErrDenied
	}
	if value, ok := values[name]; ok {
		return value, OK
	}
	return "", missing
}
