package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/schedule"
	"github.com/jobhost/jobhost/internal/text"
)

// Schedule is a section [[schedule]].
type Schedule struct {
	Name        string
	Description string
	// Cron and Timezone, or Every, say when it is due: see [Schedule.Timing].
	Cron     string
	Timezone string // empty = UTC
	Every    time.Duration
	Worker   string
	Payload  string
	// PayloadFile is the path of a file with the payload, absolute; empty = it
	// is Payload. Read it with [Manifest.ReadPayload].
	PayloadFile string
	ContentType string
	Entry       string
	Priority    jobhost.Priority
	Tasks       int
	// MaxAttempts and Timeout: 0 = the worker's.
	MaxAttempts  int
	Timeout      time.Duration
	Jitter       time.Duration
	CatchUp      jobhost.CatchUp
	CatchUpLimit int
	Overlap      jobhost.Overlap
	Labels       map[string]string
}

func defaultSchedule() Schedule {
	d := schedule.Schedule{}.OrDefaults()
	return Schedule{
		Priority: jobhost.Normal, Tasks: 1, CatchUp: d.CatchUp, CatchUpLimit: d.CatchUpLimit, Overlap: d.Overlap,
		Labels: map[string]string{},
	}
}

// Timing returns when the schedule is due.
func (s *Schedule) Timing() (schedule.Timing, error) {
	if s.Cron != "" {
		return schedule.Cron(s.Cron, s.Timezone)
	}
	return schedule.Every(s.Every)
}

// ReadPayload returns the payload of a schedule's jobs, from its file if it has
// one, within the bounds of the host.
func (m *Manifest) ReadPayload(s *Schedule) ([]byte, error) {
	if s.PayloadFile == "" {
		return []byte(s.Payload), nil
	}
	data, err := readFile(m.Dir, s.PayloadFile, int64(m.Host.MaxPayload))
	if err != nil {
		return nil, fmt.Errorf("read payload: %w", err)
	}
	return data, nil
}

// schedules reads the sections [[schedule]].
func (r *reader) schedules(doc map[string]any, m *Manifest) {
	v, given := doc["schedule"]
	if !given {
		return
	}
	tables, ok := v.([]map[string]any)
	switch {
	case !ok:
		r.faultKey([]string{"schedule"}, []string{"schedule"}, "this is not a list of schedules", "each schedule is a section of its own: [[schedule]]")
		return
	case len(tables) > MaxSchedules:
		r.faultKey([]string{"schedule"}, nil, fmt.Sprintf("%d schedules are more than %d", len(tables), MaxSchedules), "")
		return
	}
	names := r.uniqueNames("schedule", "name", tables, jobhost.CheckSchedule)
	for i, table := range tables {
		name := element(i + 1)
		if names[i] != "" {
			name = names[i]
		}
		m.Schedules = append(m.Schedules, r.schedule([]string{"schedule", name}, table, m))
	}
	slices.SortFunc(m.Schedules, func(a, b Schedule) int { return strings.Compare(a.Name, b.Name) })
}

// uniqueNames returns the names that distinguish the tables of a list, which
// stand under a key; "" for those that have none of their own.
func (r *reader) uniqueNames(list, key string, tables []map[string]any, check func(string) error) []string {
	names, seen := make([]string, len(tables)), map[string]bool{}
	for i, table := range tables {
		name, _ := table[key].(string)
		switch {
		case check(name) != nil:
		case seen[name]:
			r.faultValue([]string{list, element(i + 1), key}, wrong("", "%s is the %s of another %s", text.Quote(name, text.Short), key, list))
		default:
			seen[name], names[i] = true, name
		}
	}
	r.positions.rename(map[string][]string{list: names})
	return names
}

func (r *reader) schedule(path []string, table map[string]any, m *Manifest) Schedule {
	s := defaultSchedule()
	before := len(r.faults)
	fill(r, path, table, scheduleFields(), &s, "labels")
	if labels, ok := r.table(table, path, "labels"); ok {
		s.Labels = r.labels(at(path, "labels"), labels, schedule.MaxLabels, jobhost.LabelSchedule, jobhost.LabelTick)
	}
	if len(r.faults) > before {
		return s // faults that follow from it would be reported too
	}
	r.timing(path, table, &s)
	r.knownWorker(path, s.Worker, m)
	r.payload(path, table, &s, m.Host.MaxPayload)
	return s
}

// knownWorker reports whether the worker that a section names is there, which is a
// fault if it isn't.
func (r *reader) knownWorker(path []string, worker string, m *Manifest) bool {
	if slices.ContainsFunc(m.Workers, func(w Worker) bool { return w.Name == worker }) {
		return true
	}
	hint := ""
	if near := text.Nearest(worker, workerNamesOf(m)); near != "" {
		hint = "did you mean " + near + "?"
	}
	r.faultValue(at(path, "worker"), wrong(hint, "there is no [worker.%s]", worker))
	return false
}

func at(path []string, name string) []string { return append(slices.Clone(path), name) }

func workerNamesOf(m *Manifest) []string {
	var names []string
	for i := range m.Workers {
		names = append(names, m.Workers[i].Name)
	}
	return names
}

// timing sees that it is said once when the schedule is due, and settles the jitter.
func (r *reader) timing(path []string, table map[string]any, s *Schedule) {
	_, cron := table["cron"]
	_, every := table["every"]
	_, zone := table["timezone"]
	switch {
	case !cron && !every:
		r.faultKey(path, path, "cron or every is missing", "")
		return
	case cron && every:
		r.faultValue(at(path, "every"), wrong("leave one of them out", "cron and every are both set"))
		return
	case every && zone:
		r.faultValue(at(path, "timezone"), wrong(`use cron for times of the day`, "an interval has no time zone: it counts from 1970 UTC"))
		return
	}
	timing, err := s.Timing()
	if err != nil {
		field := "cron"
		if e, ok := errors.AsType[*jobhost.Error](err); ok && e.Field != "" {
			field = e.Field
		}
		r.faultValue(at(path, field), err)
		return
	}
	if every := timing.Interval(); every > 0 && s.Jitter > every {
		r.faultValue(at(path, "jitter"), wrong("", "%v is longer than the interval of %v", jobhost.Duration(s.Jitter), jobhost.Duration(every)))
	}
}

// payload sees that there is one payload, which the host takes.
func (r *reader) payload(path []string, table map[string]any, s *Schedule, most int) {
	if s.PayloadFile == "" {
		if len(s.Payload) > most {
			r.faultValue(at(path, "payload"), wrong("raise host.max_payload", "text of %d bytes is longer than %v", len(s.Payload), Size(most)))
		}
		return
	}
	if _, both := table["payload"]; both {
		r.faultValue(at(path, "payload_file"), wrong("leave one of them out", "payload and payload_file are both set"))
	} else if err := checkFile(r.dir, s.PayloadFile, int64(most)); err != nil {
		r.faultValue(at(path, "payload_file"), err)
	}
}

// labels reads a section of labels: what a job may have, but for those that are
// the host's own.
func (r *reader) labels(path []string, table map[string]any, most int, own ...string) map[string]string {
	labels := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		text, ok := table[name].(string)
		if !ok {
			r.faultValue(at(path, name), mismatch(table[name], "a label is text; put it in quotes"))
			continue
		}
		if slices.Contains(own, name) {
			r.faultKey(at(path, name), path, name+" is the schedule's own label", "")
			continue
		}
		one := jobhost.Spec{Worker: "w", Labels: map[string]string{name: text}}
		if err := one.Check(); err != nil {
			r.faultValue(at(path, name), err)
			continue
		}
		labels[name] = text
	}
	if len(labels) > most {
		r.faultKey(path, path, fmt.Sprintf("%d labels are more than %d", len(labels), most), "")
	}
	return labels
}

func (m *Manifest) showSchedule(b *strings.Builder, s *Schedule) {
	b.WriteString("\n[[schedule]]\n")
	showFields(b, m.Dir, scheduleFields(), s)
	showLabels(b, "schedule", s.Labels)
}
