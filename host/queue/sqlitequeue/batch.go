package sqlitequeue

import (
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// batch is what one Commit hands over; it implements [sqlitedb.Change].
type batch struct {
	ledger  *ledger
	ops     []record.Op
	texts   []texts                   // by the index of the operation; nil when none has one
	effects map[*record.JobSpec]texts // of jobs that are effects; nil when none has one
	results []record.OpResult
	weight  int
	done    func([]record.OpResult, error)
	err     error // of encoding

	single [1]record.OpResult // backs results when there is one operation
}

// texts are the JSON of an operation's labels or failure, and of its options.
type texts struct{ first, options string }

// Commit implements [record.Store].
func (s *Store) Commit(ops []record.Op, done func([]record.OpResult, error)) {
	b := &batch{ledger: s.ledger, ops: ops, done: done}
	b.encode()
	s.db.Write(b)
}

// encode does beforehand what would cost the only writer time.
func (b *batch) encode() {
	for i, op := range b.ops {
		b.weight++
		switch op := op.(type) {
		case *record.Submit:
			b.weight += weightOf(op.Job) - 1
			if text := b.encodeJob(op.Job); text != (texts{}) {
				*b.textOf(i) = text
			}
		case *record.Fire:
			b.weight += len(op.Jobs)
		case *record.Settle:
			b.weight += (len(op.Result) + len(op.Log)) / content
			if op.Failure != nil {
				b.encodeText(i, op.Failure)
			}
			if op.Effects != nil {
				b.encodeEffects(op.Effects)
			}
		case *record.ChangeKV:
			b.weighKV(op.Changes)
		case *record.Forget:
			b.weight += len(op.Refs)
		case *record.ForgetStates:
			b.weight += len(op.IDs)
		}
	}
}

// content is how many bytes weigh as much as an operation.
const content = 16 << 10

func weightOf(job *record.JobSpec) int {
	return job.Tasks + (len(job.Payload)+int(job.ItemBytes()))/content
}

func (b *batch) weighKV(changes []record.KVChange) {
	b.weight += len(changes)
	for i := range changes {
		b.weight += len(changes[i].Value) / content
	}
}

func (b *batch) encodeEffects(e *record.Effects) {
	b.weighKV(e.KV)
	for _, job := range e.Jobs {
		b.weight += weightOf(job)
		text := b.encodeJob(job)
		if text == (texts{}) {
			continue
		}
		if b.effects == nil {
			b.effects = make(map[*record.JobSpec]texts)
		}
		b.effects[job] = text
	}
}

func (b *batch) encodeJob(job *record.JobSpec) texts {
	text, err := jobTexts(job)
	if err != nil {
		b.err = err
	}
	return text
}

// jobTexts returns the texts of a job.
func jobTexts(job *record.JobSpec) (text texts, err error) {
	if text.first, err = job.LabelsText(); err != nil {
		return texts{}, err
	}
	if text.options, err = job.OptionsText(); err != nil {
		return texts{}, err
	}
	return text, nil
}

func (b *batch) encodeText(i int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		b.err = fmt.Errorf("encode operation %d: %w", i, err)
		return
	}
	b.textOf(i).first = string(text)
}

func (b *batch) textOf(i int) *texts {
	if b.texts == nil {
		b.texts = make([]texts, len(b.ops))
	}
	return &b.texts[i]
}

func (b *batch) text(i int) texts {
	if b.texts == nil {
		return texts{}
	}
	return b.texts[i]
}

// Ops implements [sqlitedb.Change].
func (b *batch) Ops() int { return b.weight }

// OnFull implements [sqlitedb.Spacious].
func (b *batch) OnFull() sqlitedb.OnFull {
	least := sqlitedb.Kept
	for _, op := range b.ops {
		how := sqlitedb.Refused
		switch op := op.(type) {
		case *record.Settle:
			if how = sqlitedb.Tried; op.Patient {
				how = sqlitedb.Kept
			}
		case *record.Cancel, *record.Delete, *record.DeleteWorkflow, *record.Tidy, *record.Forget, *record.Note:
			how = sqlitedb.Tried
		}
		least = min(least, how)
	}
	return least
}

// Apply implements [sqlitedb.Change].
func (b *batch) Apply(tx *sqlitedb.Tx) error {
	if b.err != nil {
		return b.err
	}
	tx.Join(b.ledger)
	if len(b.ops) == 1 {
		b.results = b.single[:]
	} else if b.results == nil {
		b.results = make([]record.OpResult, len(b.ops))
	}
	clear(b.results)
	for i, op := range b.ops {
		if err := b.applyOp(tx, op, b.text(i), &b.results[i]); err != nil {
			return fmt.Errorf("operation %d of %d: %w", i, len(b.ops), err)
		}
	}
	return nil
}

// applyOp makes one change. Whatever an operation can be refused for is looked
// at before it writes anything, so a refusal needs no undoing.
func (b *batch) applyOp(tx *sqlitedb.Tx, op record.Op, text texts, res *record.OpResult) error {
	switch op := op.(type) {
	case *record.Submit:
		return b.ledger.submit(tx, op.Job, text, res)
	case *record.Settle:
		if err := b.settle(tx, op, text.first, res); err != nil || res.Err != nil {
			return err
		}
		if op.Then != nil && op.Status != record.Open {
			if err := b.ledger.then(tx, op.Then, res); err != nil {
				return err
			}
		}
		return b.ledger.advance(tx, op.Transition, res)
	case *record.Cancel:
		if err := b.ledger.cancel(tx, op, res); err != nil || len(res.Tasks) == 0 {
			return err
		}
		if op.Then != nil {
			if err := b.ledger.then(tx, op.Then, res); err != nil {
				return err
			}
		}
		return b.ledger.advance(tx, op.Transition, res)
	case *record.Revive:
		if err := b.ledger.revive(tx, op, res); err != nil || res.Err != nil {
			return err
		}
		return b.ledger.advance(tx, op.Transition, res)
	case *record.Advance:
		return b.ledger.advance(tx, op.Transition, res)
	case *record.DeleteWorkflow:
		if err := b.ledger.deleteWorkflow(tx, op, res); err != nil || res.Err != nil {
			return err
		}
		return tellGone(tx, res)
	case *record.Delete:
		return b.ledger.delete(tx, op, res)
	case *record.Note:
		return note(tx, op)
	case *record.Rewind:
		return rewind(tx, op)
	case *record.ChangeKV:
		worker, err := b.ledger.worker(tx, op.Worker)
		if err != nil {
			return err
		}
		return b.ledger.changeKV(tx, worker, op.Changes, op.At, op.Quota, res)
	case *record.Fire:
		return b.ledger.fire(tx, op, res)
	case *record.Tidy:
		return b.ledger.tidy(tx, op, res)
	case *record.Forget:
		return forget(tx, op)
	case *record.NoteStates:
		return noteStates(tx, op)
	case *record.ForgetStates:
		return forgetStates(tx, op)
	default:
		return fmt.Errorf("unknown operation %T", op)
	}
}

// Done implements [sqlitedb.Change].
func (b *batch) Done(err error) {
	if err != nil {
		b.done(nil, err)
		return
	}
	b.done(b.results, nil)
}
