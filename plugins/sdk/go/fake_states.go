//go:build !wasip1

package jobhost

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is a state that another task reports in [Run]. Its Job may be left empty,
// and its Time and Version are assigned.
type Report struct {
	State
	// After is when it is reported, relative to the beginning of the attempt.
	After time.Duration
}

// fakeState is a state and when it begins.
type fakeState struct {
	State
	at time.Duration
}

// epoch is the beginning of each attempt, by the clock of the states.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// newBoard returns the reports, by time.
func newBoard(at *Attempt) (board []fakeState) {
	reports := slices.Clone(at.Reports)
	slices.SortStableFunc(reports, func(a, b Report) int { return cmp.Compare(a.After, b.After) })
	for _, r := range reports {
		r.Job = cmp.Or(r.Job, at.ID, "job")
		board = append(board, stamp(board, r.State, r.After))
	}
	return board
}

// stamp assigns a state its version and time.
func stamp(board []fakeState, s State, at time.Duration) fakeState {
	s.Version, s.Time = 1, epoch.Add(at)
	for _, old := range board {
		if old.Job == s.Job && old.Task == s.Task && old.Tag == s.Tag {
			s.Version++
		}
	}
	return fakeState{s, at}
}

// isTag checks tags as docs/abi.md describes, including "_" for those of the host.
func isTag(tag string) bool {
	name := strings.TrimPrefix(tag, "_")
	return name != "" && len(tag) <= 128 && !strings.Contains("._-", name[:1]) && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

func (h *fake) StateSet(tag string, status int32, message string, payload []byte) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(message) > 4<<10 || len(payload) > 64<<10:
		return ErrLimit
	case !isTag(tag) || !utf8.ValidString(message) || strings.Contains(message, "\x00"):
		return ErrInvalid
	case len(payload) > 0 && (payload[0] != '{' || !json.Valid(payload)):
		return ErrInvalid
	case tag[0] == '_':
		return ErrDenied
	}
	s := State{Job: cmp.Or(h.at.ID, "job"), Task: h.at.Task, Tag: tag, Status: status, Message: message, Payload: slices.Clone(payload)}
	set := stamp(h.board, s, h.clock)
	h.board = append(h.board, set)
	slices.SortStableFunc(h.board, func(a, b fakeState) int { return cmp.Compare(a.at, b.at) })
	h.result.States = append(h.result.States, set.State)
	for _, o := range h.ops {
		if o.stream != nil && o.stream.watch.selects(&set.State) {
			o.stream.add(eventOf(&set, false))
		}
	}
	return 0
}

// fakeFilter selects states.
type fakeFilter struct {
	job   string
	task  int
	tag   string
	tasks int // of the job
}

func (f *fakeFilter) selects(s *State) bool {
	return f != nil && s.Job == f.job && (f.task < 0 || s.Task == f.task) && (f.tag == "" || s.Tag == f.tag)
}

// filter parses a query, and checks whether it is allowed.
func (h *fake) filter(task int32, tag string) (*fakeFilter, Errno) {
	own := cmp.Or(h.at.ID, "job")
	f := &fakeFilter{job: own, task: int(task), tag: tag}
	if job, rest, other := strings.Cut(tag, "/"); other {
		f.job, f.tag = job, rest
	}
	if f.job == own {
		f.tasks = cmp.Or(h.at.Tasks, 1)
	}
	for _, s := range h.board {
		if s.Job == f.job {
			f.tasks = max(f.tasks, s.Task+1)
		}
	}
	switch {
	case f.task < allTasks || f.tag != "" && !isTag(f.tag) || f.job == "":
		return nil, ErrInvalid
	case f.tasks == 0:
		return nil, ErrDenied
	case f.task >= f.tasks:
		return nil, ErrInvalid
	}
	return f, 0
}

// current returns the current states of those selected, oldest first.
func (h *fake) current(f *fakeFilter) (list []fakeState) {
	for _, s := range h.board {
		if s.at > h.clock || !f.selects(&s.State) {
			continue
		}
		list = slices.DeleteFunc(list, func(old fakeState) bool { return old.Task == s.Task && old.Tag == s.Tag })
		list = append(list, s)
	}
	return list
}

func (h *fake) StateGet(task int32, tag string) ([]byte, Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, e := h.filter(task, tag)
	if e != 0 {
		return nil, e
	}
	list := h.current(f)
	for task := range f.tasks {
		reported := slices.ContainsFunc(list, func(s fakeState) bool { return s.Task == task })
		if !reported && (f.task < 0 || f.task == task) {
			list = append(list, fakeState{State: State{Job: f.job, Task: task, Tag: f.tag}})
		}
	}
	lowest := slices.MinFunc(list, func(a, b fakeState) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Task, b.Task), strings.Compare(a.Tag, b.Tag))
	})
	return jsonOf(lowest.json()), 0
}

func (h *fake) StateWatch(task int32, tag string) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, e := h.filter(task, tag)
	if e != 0 {
		return int32(e)
	}
	stream := &fakeStream{watch: f}
	for _, s := range h.current(f) {
		stream.queue = append(stream.queue, eventOf(&s, true))
	}
	stream.queue = append(stream.queue, Message{Data: jsonOf(fakeEvent{Replay: true, Sentinel: true}), After: h.clock})
	for _, s := range h.board {
		if s.at > h.clock && f.selects(&s.State) {
			stream.queue = append(stream.queue, eventOf(&s, false))
		}
	}
	return h.open(&fakeOp{stream: stream})
}

// fakeJSON and fakeEvent are formatted as the host does.
type fakeJSON struct {
	Job           string          `json:"job"`
	Task          int             `json:"task"`
	Tag           string          `json:"tag"`
	Status        int32           `json:"status"`
	Message       string          `json:"message,omitempty"`
	Timestamp     time.Time       `json:"timestamp,omitzero"`
	Version       int64           `json:"version"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	SchemaVersion int             `json:"schema_version,omitempty"`
}

type fakeEvent struct {
	State    fakeJSON `json:"state"`
	Replay   bool     `json:"replay"`
	Sentinel bool     `json:"sentinel,omitempty"`
}

func (s *fakeState) json() fakeJSON {
	return fakeJSON{
		Job: s.Job, Task: s.Task, Tag: s.Tag, Status: s.Status, Message: s.Message,
		Timestamp: s.Time, Version: s.Version, Payload: s.Payload, SchemaVersion: 1,
	}
}

func eventOf(s *fakeState, replay bool) Message {
	return Message{Data: jsonOf(fakeEvent{State: s.json(), Replay: replay}), After: s.at}
}

// jsonOf panics for a Report whose payload is not JSON.
func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("jobhost: " + err.Error())
	}
	return text
}
