package pgqueue

import (
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

const (
	// tidyLooks is about how many jobs one operation looks at, which costs it some milliseconds.
	tidyLooks = 2048
	// tidyBlocks is how many blocks are looked at together at most: those that hold tidyLooks jobs.
	tidyBlocks = tidyLooks >> 10
)

// tidy removes jobs whose time is over, block by block; the blocks that are due longest come first.
func (b *batch) tidy(tx *pgdb.Tx, s *pgdb.Session, op *record.Tidy, res *record.OpResult) error {
	looked, visited := 0, false
	for blocks := 1; looked < tidyLooks && res.Removed < int64(op.Limit); blocks = min(2*blocks, tidyBlocks) {
		v := &visit{at: int64(op.At), lag: op.Lag.Milliseconds(), room: int64(op.Limit) - res.Removed}
		if err := v.due(s, blocks); err != nil {
			return err
		}
		if len(v.blocks) == 0 {
			break
		}
		if err := b.image.visit(tx, s, v); err != nil {
			return err
		}
		res.Removed += v.removed
		looked, visited = looked+v.looked, true
	}
	left, err := b.tidyWorkflows(tx, s, op, res)
	if err != nil {
		return err
	}
	if err := tellGone(s, res); err != nil {
		return err
	}
	if visited || left {
		res.Next = op.At
		return nil
	}
	if _, err := s.Exec("DELETE FROM jobhost.death WHERE hour<$1", int64(op.At)-deathMemory.Milliseconds()); err != nil {
		return err
	}
	if err := forgetRefused(s); err != nil {
		return err
	}
	_, err = s.One([]any{&res.Next}, `SELECT coalesce(least((SELECT min(due) FROM jobhost.span WHERE due>0),
		(SELECT min(expires_at) FROM jobhost.workflow WHERE expires_at>0)), 0)`)
	return err
}

// visit is one look at the jobs in some blocks of keys.
type visit struct {
	at, lag int64
	blocks  []visited
	room    int64 // tasks that may be removed
	removed int64
	looked  int
	over    []keyRange
}

// visited is the result for a block.
type visited struct {
	block int64
	full  bool  // there is more to remove
	stays bool  // a job in it stays
	next  int64 // when the time of the next of these is over, 0 = never
}

// due reads up to n blocks that are due.
func (v *visit) due(s *pgdb.Session, n int) error {
	var block int64
	return s.Each([]any{&block}, func() error {
		v.blocks = append(v.blocks, visited{block: block})
		return nil
	}, "SELECT block FROM jobhost.span WHERE due>0 AND due<=$1 ORDER BY due, block LIMIT $2", v.at, n)
}

// visit removes the jobs in blocks whose time is over, and notes when to look at the blocks again.
func (im *image) visit(tx *pgdb.Tx, s *pgdb.Session, v *visit) error {
	if err := v.look(s); err != nil {
		return err
	}
	if _, err := im.remove(tx, s, v.over); err != nil {
		return err
	}
	var empty, blocks, dues []int64
	for _, b := range v.blocks {
		switch {
		case b.full: // it stays due
		case !b.stays && b.block < blockOf(im.next):
			empty = append(empty, b.block)
		default:
			if b.next != 0 {
				b.next = max(b.next, v.at+v.lag)
			}
			blocks, dues = append(blocks, b.block), append(dues, b.next)
		}
	}
	if len(empty) > 0 {
		if _, err := s.Exec("DELETE FROM jobhost.span WHERE block=ANY($1)", empty); err != nil {
			return err
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	_, err := s.Exec("UPDATE jobhost.span AS s SET due=t.due FROM unnest($1::bigint[], $2::bigint[]) AS t(block, due) WHERE s.block=t.block", blocks, dues)
	return err
}

// ended is what judge has to know of a job.
type ended struct {
	key, tasks  int64
	open        bool
	first, last int64 // times until which its tasks are kept; first 0 = one is kept forever
}

// look judges the jobs of the blocks. OFFSET 0 keeps the subqueries apart, so that each is a lookup in an index for each block
// or job, whatever numbers the planner expects.
func (v *visit) look(s *pgdb.Session) error {
	var n int
	var job ended
	return s.Each([]any{&n, &job.key, &job.tasks, &job.open, &job.first, &job.last}, func() error {
		v.looked++
		v.judge(&v.blocks[n-1], &job)
		return nil
	}, `SELECT b.n, t.seq, t.tasks, coalesce(p.open>0, t.status=0), coalesce(e.first, t.expires_at), coalesce(e.last, t.expires_at)
		FROM unnest($1::bigint[]) WITH ORDINALITY AS b(block, n)
		CROSS JOIN LATERAL (SELECT seq, tasks, status, expires_at FROM jobhost.task
			WHERE seq>=b.block<<10 AND seq<(b.block+1)<<10 AND idx=0 OFFSET 0) AS t
		LEFT JOIN LATERAL (SELECT open FROM jobhost.part WHERE t.tasks>1 AND job=t.seq OFFSET 0) AS p ON true
		LEFT JOIN LATERAL (SELECT min(expires_at) AS first, max(expires_at) AS last FROM jobhost.task
			WHERE p.open=0 AND seq>=t.seq AND seq<t.seq+t.tasks) AS e ON true
		ORDER BY b.n, t.seq`, column(v.blocks, func(b *visited) int64 { return b.block }))
}

// judge adds a job to those that are removed, or notes that it stays.
func (v *visit) judge(b *visited, job *ended) {
	switch {
	case job.open || job.first == 0:
		b.stays = true
	case job.last > v.at:
		b.stays = true
		if b.next == 0 || job.last < b.next {
			b.next = job.last
		}
	case v.removed >= v.room:
		b.full = true
	default:
		v.over = addRange(v.over, keyRange{job.key, job.key + job.tasks})
		v.removed += job.tasks
	}
}
