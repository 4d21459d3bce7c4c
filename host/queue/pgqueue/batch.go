package pgqueue

import (
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/pgdb"
)

// batch is the operations of one Commit; it implements [pgdb.Change].
type batch struct {
	image   *image
	ops     []record.Op
	texts   map[*record.JobSpec]texts // of the jobs in the operations
	results []record.OpResult
	rows    int
	bytes   int
	done    func([]record.OpResult, error)
	err     error // of encoding
}

// texts are the JSON of a job's labels and of its options.
type texts struct{ labels, options string }

// Commit implements [record.Store].
func (s *Store) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	b := &batch{image: s.image, ops: ops, done: done}
	for _, op := range ops {
		b.weigh(op)
	}
	s.writer.Write(b)
}

// weigh adds up what an operation writes. It also encodes jobs, so that the single writer needn't.
func (b *batch) weigh(op record.Op) {
	b.rows++
	switch op := op.(type) {
	case *record.Submit:
		b.weighJob(op.Job)
	case *record.Fire:
		for _, job := range op.Jobs {
			b.weighJob(job)
		}
	case *record.Settle:
		b.bytes += len(op.Result) + len(op.Log)
		if e := op.Effects; e != nil {
			b.weighKV(e.KV)
			for _, job := range e.Jobs {
				b.weighJob(job)
			}
		}
	case *record.ChangeKV:
		b.weighKV(op.Changes)
	case *record.Forget:
		b.rows += len(op.Refs)
	case *record.ForgetStates:
		b.rows += len(op.IDs)
	}
}

func (b *batch) weighKV(changes []record.KVChange) {
	b.rows += len(changes)
	for i := range changes {
		b.bytes += len(changes[i].Value)
	}
}

func (b *batch) weighJob(job *record.JobSpec) {
	b.rows += job.Tasks
	b.bytes += len(job.Payload) + int(job.ItemBytes())
	text, err := textsOf(job)
	if err != nil {
		b.err = err
	}
	if b.texts == nil {
		b.texts = make(map[*record.JobSpec]texts, len(b.ops))
	}
	b.texts[job] = text
}

// textsOf returns the texts of a job.
func textsOf(job *record.JobSpec) (t texts, err error) {
	if t.labels, err = job.LabelsText(); err != nil {
		return texts{}, err
	}
	t.options, err = job.OptionsText()
	return t, err
}

// textsOf returns the texts of a job. They are encoded now if the job was made while operations were applied.
func (b *batch) textsOf(job *record.JobSpec) (texts, error) {
	if t, ok := b.texts[job]; ok {
		return t, nil
	}
	return textsOf(job)
}

// Size implements [pgdb.Change].
func (b *batch) Size() (ops, bytes int) { return b.rows, b.bytes }

// Patient implements [pgdb.Patient].
func (b *batch) Patient() bool {
	for _, op := range b.ops {
		if settle, ok := op.(*record.Settle); !ok || !settle.Patient {
			return false
		}
	}
	return true
}

// Apply implements [pgdb.Change].
func (b *batch) Apply(tx *pgdb.Tx) error {
	if b.err != nil {
		return b.err
	}
	tx.Join(b.image)
	b.results = make([]record.OpResult, len(b.ops))
	for i, op := range b.ops {
		tx.Part()
		if err := b.applyOp(tx, op, &b.results[i]); err != nil {
			return fmt.Errorf("operation %d of %d: %w", i, len(b.ops), err)
		}
	}
	return nil
}

// applyOp applies one operation. Operations check everything that they can be refused for before they change anything, so a
// refusal needs no undo.
func (b *batch) applyOp(tx *pgdb.Tx, op record.Op, res *record.OpResult) error {
	switch op := op.(type) {
	case *record.Submit:
		if err := b.submit(tx, op.Job, res); err != nil || tx.Missed() {
			return err
		}
		reason := ""
		if res.Err != nil {
			reason = res.Err.Error()
		}
		b.image.inbox.take(op.Incoming, reason)
		return nil
	case *record.Refuse:
		b.image.inbox.take(op.Incoming, op.Reason)
		return nil
	case *record.Settle:
		b.prefetch(tx, op.Transition)
		if err := b.settle(tx, op, res); err != nil || res.Err != nil || tx.Missed() {
			return err
		}
		if op.Then != nil && op.Status != record.Open {
			if err := b.then(tx, op.Then, res); err != nil {
				return err
			}
		}
		return b.advance(tx, op.Transition, res)
	case *record.Cancel:
		if err := b.cancel(tx, op, res); err != nil || len(res.Tasks) == 0 {
			return err
		}
		if op.Then != nil {
			if err := b.then(tx, op.Then, res); err != nil {
				return err
			}
		}
		return b.advance(tx, op.Transition, res)
	case *record.Revive:
		if err := b.revive(tx, op, res); err != nil || res.Err != nil || tx.Missed() {
			return err
		}
		return b.advance(tx, op.Transition, res)
	case *record.Advance:
		return b.advance(tx, op.Transition, res)
	case *record.ChangeKV:
		return b.changeKV(tx, op, res)
	case *record.Fire:
		return b.fire(tx, op, res)
	case *record.Note:
		b.image.notes.keep(op.Name, op.Text)
		return nil
	default:
		return b.applyDirect(tx, op, res)
	}
}

// applyDirect applies an operation that runs statements.
func (b *batch) applyDirect(tx *pgdb.Tx, op record.Op, res *record.OpResult) error {
	s := tx.Direct()
	if s == nil {
		return nil
	}
	switch op := op.(type) {
	case *record.Delete:
		return b.delete(tx, s, op, res)
	case *record.DeleteWorkflow:
		return b.deleteWorkflow(tx, s, op, res)
	case *record.Tidy:
		return b.tidy(tx, s, op, res)
	case *record.Rewind:
		return rewind(s, op)
	case *record.Forget:
		return forget(s, op)
	case *record.NoteStates:
		return noteStates(s, op)
	case *record.ForgetStates:
		return forgetStates(s, op)
	default:
		return fmt.Errorf("unknown operation %T", op)
	}
}

// Done implements [pgdb.Change].
func (b *batch) Done(err error) {
	if err != nil {
		b.done(nil, err)
		return
	}
	b.done(b.results, nil)
}
