package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/host/workflow/plan"
)

// StartWorkflow starts a workflow: see [jobhost.WorkflowRunner].
func (e *Engine) StartWorkflow(ctx context.Context, s jobhost.WorkflowStart) (jobhost.WorkflowReceipt, error) {
	def, err := e.startable(&s)
	if err != nil {
		return jobhost.WorkflowReceipt{}, fmt.Errorf("start workflow: %w", err)
	}
	if s.ID == "" {
		s.ID = jobhost.WorkflowIDPrefix + jobhost.NewID()
	}
	w := &record.WorkflowRecord{
		ID: s.ID, Name: def.Workflow.Name, Definition: def.hash, Labels: merge(def.Workflow.Labels, s.Labels),
		Retention: (s.Retention + time.Millisecond - 1).Truncate(time.Millisecond), Digest: digestOf(def, &s),
	}
	starting := e.starting.Add(1)
	defer e.starting.Add(-1)
	refusal := e.room(def, starting)
	t := &transition{engine: e, at: e.now()}
	t.first = func(t *transition, tx record.WorkflowTx, _ record.End) (*happening, error) {
		there, err := tx.WorkflowByID(w.ID)
		if err != nil {
			return nil, err
		}
		if t.there = there; there != nil || refusal != nil {
			return nil, nil //nolint:nilerr // a refusal is an answer
		}
		fresh := *w
		fresh.StartedAt = t.at
		if added, err := t.add(tx, &fresh, def, s.Input); err != nil {
			return nil, err
		} else if !added {
			t.refused = &jobhost.Error{
				Code: jobhost.CodeConflict, Field: "id", Message: fmt.Sprintf("workflow %s is being removed", w.ID), Hint: "try again later, or choose another id",
			}
			return nil, nil
		}
		first := t.todo[0]
		t.todo = t.todo[:0]
		return &first, nil
	}
	if err := e.queue.Advance(ctx, t); err != nil {
		return jobhost.WorkflowReceipt{}, fmt.Errorf("start workflow: %w", err)
	}
	switch {
	case t.there == nil && refusal != nil:
		return jobhost.WorkflowReceipt{}, fmt.Errorf("start workflow: %w", refusal)
	case t.there == nil && t.refused != nil:
		return jobhost.WorkflowReceipt{}, fmt.Errorf("start workflow: %w", t.refused)
	case t.there == nil:
		return jobhost.WorkflowReceipt{ID: w.ID, Status: t.status()}, nil
	case t.there.Digest != w.Digest:
		return jobhost.WorkflowReceipt{}, fmt.Errorf("start workflow: %w", &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "id", Message: fmt.Sprintf("workflow %s exists with other content", w.ID),
			Hint: "choose another id, or leave it out to get one",
		})
	}
	return jobhost.WorkflowReceipt{ID: w.ID, Status: statusOf(t.there.Status), Deduplicated: true}, nil
}

// status returns the status of the workflow that a start has created: it has already ended if it has
// nothing to run.
func (t *transition) status() jobhost.WorkflowStatus {
	for i := len(t.notes) - 1; i > 0; i-- {
		if n := &t.notes[i]; n.kind == jobhost.EventWorkflowEnded && n.id == t.notes[0].id {
			return n.status
		}
	}
	return jobhost.WorkflowRunning
}

// startable finds the definition for a start and checks the input.
func (e *Engine) startable(s *jobhost.WorkflowStart) (*definition, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if len(s.Input) > e.cfg.MaxInput {
		return nil, &jobhost.Error{
			Code: jobhost.CodeTooLarge, Field: "input", Message: fmt.Sprintf("an input of %d bytes is larger than %d", len(s.Input), e.cfg.MaxInput),
			Hint: "send where it is instead, or raise host.max_payload",
		}
	}
	if s.Input == nil {
		s.Input = []byte("null")
	}
	def := e.defs.byName(s.Workflow)
	if s.Definition != nil {
		var err error
		if def, err = e.defs.inline(*s.Definition); err != nil {
			return nil, err
		}
	}
	if def == nil {
		return nil, e.defs.missing(s.Workflow)
	}
	if def.InputSchema != nil {
		if err := def.InputSchema.Check(s.Input); err != nil {
			return nil, misfit(err, s.Workflow)
		}
	}
	return def, nil
}

// misfit is the error for an input that doesn't fit the definition.
func misfit(err error, name string) error {
	message, hint := err.Error(), ""
	if name != "" {
		hint = fmt.Sprintf("GET /v1/definitions/%s shows what it wants", name)
	}
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		message = e.Message
	}
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: "input", Message: "the input doesn't fit the workflow's input_schema: " + message, Hint: hint,
	}
}

// inline prepares a definition that was sent along with a start. All its faults are one error.
func (ds *definitions) inline(w jobhost.Workflow) (*definition, error) {
	env, generation := ds.env()
	hash, err := plan.Hash(&w)
	if err != nil {
		return nil, err
	}
	if d := ds.cached(hash); d != nil && d.checked.Load() == generation {
		return d, nil
	}
	p, err := plan.Compile(w, env())
	if err != nil {
		return nil, err
	}
	d := ds.cached(hash)
	if d == nil {
		if d, err = newDefinition(p, hash); err != nil {
			return nil, err
		}
		ds.keep(d)
	}
	d.checked.Store(generation)
	return d, nil
}

// room returns why no workflow of a definition can start now, given the number of starts in progress; nil
// = it can.
func (e *Engine) room(def *definition, starting int64) error {
	if open := e.open.Load(); open+starting > int64(e.cfg.MaxOpen) {
		return &jobhost.Error{
			Code: jobhost.CodeExhausted, Message: fmt.Sprintf("%d workflows are open, of %d", open, e.cfg.MaxOpen),
			Hint: "try again later, or raise workflows.max_open", RetryAfter: time.Second,
		}
	}
	for i := range def.Steps {
		s := &def.Steps[i]
		if s.Level > 0 {
			continue
		}
		if s.Worker != "" && s.FallbackOf < 0 {
			if err := e.queue.Room(s.Worker); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) now() record.Millis { return record.MillisOf(e.queue.Now()) }

// digestOf identifies the content of a start, apart from the id.
func digestOf(def *definition, s *jobhost.WorkflowStart) [16]byte {
	h := sha256.New()
	text := func(s string) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	if s.Definition != nil {
		text("definition")
		text(def.hash)
	} else {
		// The same start isn't changed by a new version of a named definition.
		text("workflow")
		text(s.Workflow)
	}
	text(string(s.Input))
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		text(k)
		text(s.Labels[k])
	}
	text(s.Retention.String())
	var sum [sha256.Size]byte
	return [16]byte(h.Sum(sum[:0]))
}
