package sqlitequeue

import (
	"encoding/json"
	"fmt"

	"github.com/jobhost/jobhost/host/queue"
	"github.com/jobhost/jobhost/internal/sqlitedb"
)

// batch is what one Commit hands over; it implements [sqlitedb.Change].
type batch struct {
	ledger  *ledger
	ops     []queue.Op
	texts   []string // JSON of an operation's labels or failure, by its index; nil when none has one
	results []queue.OpResult
	weight  int
	done    func([]queue.OpResult, error)
	err     error // of encoding
}

// Commit implements [queue.Store].
func (s *Store) Commit(ops []queue.Op, done func([]queue.OpResult, error)) {
	b := &batch{ledger: s.ledger, ops: ops, done: done}
	b.encode()
	s.db.Write(b)
}

// encode does beforehand what the writer, of which there is only one, need not do.
func (b *batch) encode() {
	const content = 16 << 10 // bytes that weigh as much as an operation
	for i, op := range b.ops {
		b.weight++
		switch op := op.(type) {
		case *queue.Submit:
			b.weight += op.Job.Tasks - 1 + len(op.Job.Payload)/content
			if len(op.Job.Labels) > 0 {
				b.encodeText(i, op.Job.Labels)
			}
		case *queue.Settle:
			b.weight += (len(op.Result) + len(op.Log)) / content
			if op.Failure != nil {
				b.encodeText(i, op.Failure)
			}
		}
	}
}

func (b *batch) encodeText(i int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		b.err = fmt.Errorf("encode operation %d: %w", i, err)
		return
	}
	if b.texts == nil {
		b.texts = make([]string, len(b.ops))
	}
	b.texts[i] = string(text)
}

func (b *batch) text(i int) string {
	if b.texts == nil {
		return ""
	}
	return b.texts[i]
}

// Ops implements [sqlitedb.Change].
func (b *batch) Ops() int { return b.weight }

// Apply implements [sqlitedb.Change].
func (b *batch) Apply(tx *sqlitedb.Tx) error {
	if b.err != nil {
		return b.err
	}
	tx.Join(b.ledger)
	if b.results == nil {
		b.results = make([]queue.OpResult, len(b.ops))
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
func (b *batch) applyOp(tx *sqlitedb.Tx, op queue.Op, text string, res *queue.OpResult) error {
	switch op := op.(type) {
	case *queue.Submit:
		return b.ledger.submit(tx, op.Job, text, res)
	case *queue.Settle:
		return b.ledger.settle(tx, op, text, res)
	case *queue.Cancel:
		return b.ledger.cancel(tx, op, res)
	case *queue.Revive:
		return b.ledger.revive(tx, op, res)
	case *queue.Delete:
		return b.ledger.delete(tx, op, res)
	case *queue.Tidy:
		return b.ledger.tidy(tx, op, res)
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
