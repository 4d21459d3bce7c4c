package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
)

// reader turns the tables that the TOML library read into a [Manifest] and
// collects what is wrong with them.
type reader struct {
	options
	file      string
	positions *positions
	faults    Faults
	warnings  Faults
}

// faultAt reports a fault at an offset into the text; -1 = it has no place.
func (r *reader) faultAt(offset int, key, message, hint string) {
	f := &Fault{File: r.file, Key: key, Message: message, Hint: hint}
	if offset >= 0 {
		f.Line, f.Column = r.positions.lineColumn(offset)
	}
	r.faults = append(r.faults, f)
}

// faultKey reports a fault of a section or of a key as such; section is what it is named under.
func (r *reader) faultKey(path, section []string, message, hint string) {
	p, ok := r.positions.find(path)
	if !ok {
		p.key = -1
	}
	r.faultAt(p.key, keyText(section), message, hint)
}

// faultValue reports the error of a setting's value.
func (r *reader) faultValue(path []string, err error) {
	p, ok := r.positions.find(path)
	if !ok {
		p.value = -1
	}
	var e *jobhost.Error
	if !errors.As(err, &e) {
		e = &jobhost.Error{Message: err.Error()}
	}
	r.faultAt(p.value, keyText(path), e.Error(), e.Hint)
}

// sections are the names of what a manifest consists of.
var sections = []string{"host", "worker", "schedule", "fibers", "fiber", "workflows", "workflow", "webhook", "payload", "cluster"}

func (r *reader) manifest(doc map[string]any) *Manifest {
	m := &Manifest{Dir: r.dir, Host: defaultHost(r.dir), Unpinned: r.unpinned}
	for name := range doc {
		if !slices.Contains(sections, name) {
			r.unknownSection(name, doc[name])
		}
	}
	r.host(doc, m)

	workers, _ := r.table(doc, nil, "worker")
	switch _, given := doc["worker"]; {
	case len(workers) > MaxWorkers:
		r.faultKey([]string{"worker"}, nil, fmt.Sprintf("%d workers are more than %d", len(workers), MaxWorkers), "")
		return m
	case len(workers) == 0 && (!given || workers != nil):
		r.faultAt(-1, "", "the manifest has no worker", "add a section [worker.NAME] with a plugin")
	}
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		if table, ok := r.table(workers, []string{"worker"}, name); ok {
			w := r.worker(name, table)
			if w.Sandbox == "" {
				w.Sandbox = m.Host.Trust.sandbox()
			}
			if _, given := table["pool_size"]; !given && w.Sandbox == runtime.SandboxProcess && w.ABI != runtime.ABIProcess {
				w.PoolSize *= SlotsInProcess
			}
			m.Workers = append(m.Workers, w)
		}
	}
	r.checkGrants(m.Workers, slices.Sorted(maps.Keys(workers)))
	r.schedules(doc, m)
	r.fibers(doc, m)
	r.workflows(doc, m)
	r.cluster(doc, m)
	r.payloads(doc, m)
	m.Webhook = r.webhook(doc)
	return m
}

// host reads the section [host].
func (r *reader) host(doc map[string]any, m *Manifest) {
	if table, ok := r.table(doc, nil, "host"); ok {
		fill(r, []string{"host"}, table, hostFields(), &m.Host)
		if _, given := table["open_metrics"]; !given && m.Host.BehindProxy {
			m.Host.OpenMetrics = false
		}
	}
	if m.Host.OpenReads && m.Host.BehindProxy {
		r.faultKey([]string{"host", "open_reads"}, nil, "behind a proxy all requests look as if they came from this machine", "leave it out: commands and clients read with the token")
	}
	m.Host.derive(r.dir)
	if err := CheckListen(m.Host.Listen, m.Host.BehindProxy); err != nil {
		r.faultValue([]string{"host", "listen"}, err)
	}
}

// SlotsInProcess is how many times more slots a worker has whose sandboxes are in a process of their own: a task that
// is on its way there or back leaves the CPU to others.
const SlotsInProcess = 32

// table returns the table of that name; a value that is none is a fault.
func (r *reader) table(in map[string]any, path []string, name string) (map[string]any, bool) {
	v, given := in[name]
	if !given {
		return nil, false
	}
	table, ok := v.(map[string]any)
	if !ok {
		path = append(slices.Clone(path), name)
		section := keyText(path)
		if len(path) == 3 && path[0] != "worker" && path[0] != "workflow" {
			section = path[0] + "." + name // of the table of the list above it
		}
		if len(path) == 5 { // of a step
			section = keyText([]string{"workflow", path[1], "step", name})
		}
		if (name == "worker" || name == "workflow") && len(path) == 1 {
			section += ".NAME"
		}
		hint := "write it as a section: [" + section + "]"
		if len(path) == 2 && (path[0] == "worker" || path[0] == "workflow") {
			hint = "each " + path[0] + " is a section of its own: [" + path[0] + ".NAME]"
		}
		r.faultValue(path, mismatch(v, hint))
	}
	return table, ok
}

func (r *reader) unknownSection(name string, v any) {
	fault := "is not a section"
	hint := "the sections are [host], [worker.NAME], [[schedule]], [fibers], [[fiber]], [workflows], [workflow.NAME], [webhook] and [payload]"
	switch v.(type) {
	case map[string]any, []map[string]any:
		if near := text.Nearest(name, sections); near != "" {
			hint = "did you mean " + near + "?"
		}
	default:
		fault = "stands outside of a section"
		if slices.Contains(hostNames, name) {
			hint = "it belongs below [host]"
		} else if slices.Contains(workerNames, name) {
			hint = "it belongs below [worker.NAME]"
		}
	}
	r.faultKey([]string{name}, nil, keyText([]string{name})+" "+fault, hint)
}

// fill sets the fields that a table gives. subs are the tables that may be in
// it and are read elsewhere.
func fill[T any](r *reader, path []string, table map[string]any, fields []field[T], t *T, subs ...string) {
	for _, f := range fields {
		v, given := table[f.name]
		if given {
			if err := f.bind(r.dir, t).set(v); err != nil {
				r.faultValue(append(slices.Clone(path), f.name), err)
			}
		} else if f.required {
			r.faultKey(path, path, f.name+" is missing", "")
		}
	}
	known := append(names(fields), subs...)
	for name := range table {
		if !slices.Contains(known, name) {
			r.unknownKey(path, name, known)
		}
	}
}

func (r *reader) unknownKey(path []string, name string, known []string) {
	hint, near := "", text.Nearest(name, known)
	switch {
	case (path[0] == "worker" && len(path) == 2 || path[0] == "webhook" && len(path) == 1) && slices.Contains(retryNames, name):
		hint = "it belongs below [" + keyText(path) + ".retry]"
	case path[0] == "worker" && len(path) == 2 && slices.Contains(retentionNames, name):
		hint = "it belongs below [" + keyText(path) + ".retention]"
	case path[0] == "workflow" && len(path) == 2 && slices.Contains(stepNames, name):
		hint = "it belongs below [[" + keyText(path) + ".step]]"
	case path[0] == "worker" && slices.Contains(hostNames, name):
		hint = "it belongs below [host]"
	case path[0] == "worker" && len(path) == 3 && slices.Contains(workerNames, name):
		hint = "it belongs below [" + keyText(path[:2]) + "]"
	case path[0] == "host" && slices.Contains(workerNames, name):
		hint = "it belongs below [worker.NAME]"
	case near != "":
		hint = "did you mean " + near + "?"
	default:
		hint = "the settings here are " + strings.Join(known, ", ")
	}
	r.faultKey(append(slices.Clone(path), name), path, keyText([]string{name})+" is not a setting", hint)
}
