package sqlitequeue

import (
	"context"
	"fmt"
	"math"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// Jobs implements [queue.Reader]. It merges streams of job keys, newest first,
// each read from an index in small pieces: of all jobs, or of the tasks with
// one worker and status. Whole blocks of keys that were created at other times
// are skipped, see the schema.
func (s *Store) Jobs(ctx context.Context, q record.ListQuery) ([]record.JobRecord, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	l := &lister{q: q, cursor: math.MaxInt64, block: -1}
	if q.Below > 0 {
		l.cursor = int64(q.Below)
	}
	err := s.db.Read(ctx, func(r *sqlitedb.Reader) error {
		l.r = r
		if q.Keys != nil {
			return l.byKeys()
		}
		return l.byStreams()
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return l.jobs, nil
}

// lister makes one page.
type lister struct {
	r      *sqlitedb.Reader
	q      record.ListQuery
	cursor int64 // only keys below it
	block  int64 // last block that was found to be in the range of times
	jobs   []record.JobRecord
}

// byKeys looks the wanted jobs up one by one.
func (l *lister) byKeys() error {
	for _, key := range l.q.Keys {
		if len(l.jobs) == l.q.Limit {
			break
		}
		if int64(key) >= l.cursor {
			continue
		}
		if err := l.add(int64(key)); err != nil {
			return err
		}
	}
	return nil
}

// byStreams merges the streams that hold what is wanted.
func (l *lister) byStreams() error {
	streams, err := l.streams()
	if err != nil {
		return err
	}
	if err := l.align(); err != nil {
		return err
	}
	labels := l.labels()
	for len(l.jobs) < l.q.Limit {
		key, err := l.next(streams, labels)
		if key == 0 || err != nil {
			return err
		}
		l.cursor = key
		ok, err := l.inRange(key)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := l.add(key); err != nil {
			return err
		}
	}
	return nil
}

// next returns the highest key below the cursor that is in one of the streams
// and has all labels, 0 when there is none. Each stream is asked again below
// what another one has next, so that long stretches without a match are
// skipped.
func (l *lister) next(streams, labels []*stream) (int64, error) {
	for below := l.cursor; ; {
		var key int64
		for _, s := range streams {
			k, err := s.peek(l.r, below)
			if err != nil {
				return 0, err
			}
			key = max(key, k)
		}
		lowest := key
		for _, s := range labels {
			k, err := s.peek(l.r, key+1)
			if err != nil {
				return 0, err
			}
			lowest = min(lowest, k)
		}
		if lowest == key || lowest == 0 {
			return lowest, nil
		}
		var err error
		if below, err = l.aligned(lowest + 1); err != nil {
			return 0, err
		}
	}
}

// labels returns a stream for each label that is asked for.
func (l *lister) labels() []*stream {
	var streams []*stream
	for name, value := range l.q.Labels {
		streams = append(streams, &stream{name: name, value: value, label: true, size: int64(min(l.q.Limit, 64))})
	}
	return streams
}

// inRange reports whether the key's block may hold jobs of the wanted times.
// If not, it moves the cursor to the end of the next one that does, or to 0.
func (l *lister) inRange(key int64) (bool, error) {
	if l.q.After == 0 && l.q.Before == 0 || blockOf(key) == l.block {
		return true, nil
	}
	before := int64(math.MaxInt64)
	if l.q.Before != 0 {
		before = int64(l.q.Before)
	}
	s := l.r.Stmt("SELECT block FROM span WHERE block<=? AND high>=? AND low<? ORDER BY block DESC LIMIT 1").
		Int(blockOf(key)).Int(int64(l.q.After)).Int(before)
	if !s.Step() {
		l.cursor = 0
		return false, s.Done()
	}
	l.block = s.ColInt(0)
	if l.block == blockOf(key) {
		return true, s.Done()
	}
	l.cursor = blockEnd(l.block)
	if err := s.Done(); err != nil {
		return false, err
	}
	return false, l.align()
}

// align moves the cursor, which may lie within a job, to the job's end.
func (l *lister) align() (err error) {
	if l.cursor != math.MaxInt64 {
		l.cursor, err = l.aligned(l.cursor)
	}
	return err
}

// aligned returns the end of the last job that begins below a key, 0 when there
// is none: streams read tasks, and those after the key belong to a job that
// begins below it.
func (l *lister) aligned(key int64) (end int64, err error) {
	s := l.r.Stmt("SELECT seq+tasks FROM job WHERE seq<? ORDER BY seq DESC LIMIT 1").Int(key)
	if s.Step() {
		end = s.ColInt(0)
	}
	return end, s.Done()
}

// add appends the job if it is wanted.
func (l *lister) add(key int64) error {
	job, err := scanJob(l.r.Stmt(selectJobHead+" WHERE seq=?").Int(key), false)
	if err != nil || job == nil {
		return err
	}
	switch {
	case l.q.Worker != "" && l.q.Worker != job.Worker,
		l.q.After != 0 && job.CreatedAt < l.q.After,
		l.q.Before != 0 && job.CreatedAt >= l.q.Before:
		return nil
	}
	if err := readParent(l.r, job); err != nil {
		return err
	}
	if l.q.Parent != "" && (job.Parent == nil || job.Parent.ID != l.q.Parent) {
		return nil
	}
	if err := readTasks(l.r, job); err != nil {
		return err
	}
	for name, value := range l.q.Labels {
		if got, ok := job.Labels[name]; !ok || got != value {
			return nil
		}
	}
	if l.q.Status != nil && !hasStatus(job.Tasks, *l.q.Status) {
		return nil
	}
	l.jobs = append(l.jobs, *job)
	return nil
}

func hasStatus(tasks []record.TaskRecord, status record.Status) bool {
	for i := range tasks {
		if tasks[i].Status == status {
			return true
		}
	}
	return false
}

// streams returns those whose union holds what is wanted.
func (l *lister) streams() ([]*stream, error) {
	size := int64(min(l.q.Limit, 64))
	if l.q.Parent != "" {
		return []*stream{{parent: l.q.Parent, size: size}}, nil
	}
	if l.q.Worker == "" && l.q.Status == nil {
		return []*stream{{size: size}}, nil
	}
	s := l.r.Stmt(`SELECT worker, status FROM counter JOIN worker ON worker.id=counter.worker
		WHERE n>0 AND (?1='' OR worker.name=?1) AND (?2<0 OR status=?2)`).Text(l.q.Worker)
	if l.q.Status == nil {
		s.Int(-1)
	} else {
		s.Int(int64(*l.q.Status))
	}
	var streams []*stream
	for s.Step() {
		streams = append(streams, &stream{worker: s.ColInt(0), status: s.ColInt(1), size: size})
	}
	return streams, s.Done()
}

// stream yields keys of jobs, descending: of those with a label, of those with
// tasks of a worker in a status, or of all when worker is 0.
type stream struct {
	parent         string // whose children; empty = anybody's
	label          bool
	name, value    string
	worker, status int64
	size           int64   // of a piece
	keys           []int64 // of the piece, what is left
	below          int64   // where the next piece begins, once begun
	begun, end     bool
}

// peek returns the highest key below the cursor, 0 at the end.
func (s *stream) peek(r *sqlitedb.Reader, cursor int64) (int64, error) {
	for {
		for len(s.keys) > 0 {
			if s.keys[0] < cursor {
				return s.keys[0], nil
			}
			s.keys = s.keys[1:]
		}
		if s.end {
			return 0, nil
		}
		if !s.begun || cursor < s.below {
			s.below, s.begun = cursor, true
		}
		if err := s.fill(r); err != nil {
			return 0, err
		}
	}
}

// fill reads the next piece. Tasks of one job have consecutive keys, so all of
// them yield one key, and the next piece begins below the job.
func (s *stream) fill(r *sqlitedb.Reader) error {
	var st *sqlitedb.Stmt
	switch {
	case s.parent != "":
		st = r.Stmt("SELECT job FROM child WHERE parent=? AND job<? ORDER BY job DESC LIMIT ?").
			Text(s.parent).Int(s.below).Int(s.size)
	case s.label:
		st = r.Stmt("SELECT job FROM label WHERE name=? AND value=? AND job<? ORDER BY job DESC LIMIT ?").
			Text(s.name).Text(s.value).Int(s.below).Int(s.size)
	case s.worker == 0:
		st = r.Stmt("SELECT seq FROM job WHERE seq<? ORDER BY seq DESC LIMIT ?").Int(s.below).Int(s.size)
	default:
		st = r.Stmt(`SELECT job FROM task INDEXED BY task_list
			WHERE worker=? AND status=? AND seq<? ORDER BY seq DESC LIMIT ?`).
			Int(s.worker).Int(s.status).Int(s.below).Int(s.size)
	}
	s.keys = s.keys[:0]
	rows := int64(0)
	for st.Step() {
		rows++
		if key := st.ColInt(0); key != s.below {
			s.keys = append(s.keys, key)
			s.below = key
		}
	}
	s.end = rows < s.size
	return st.Done()
}
