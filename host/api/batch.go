package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

const (
	batchJobs  = 256     // handed to the server at once
	batchBytes = 4 << 20 // of lines handed to the server at once
)

// batch is one POST /v1/jobs:batch while it is served. Lines are read until a
// chunk is full, or until no more of them have arrived; the chunk is submitted
// and answered; then the next one. So a batch may be endless, and none waits
// for a line that has not been sent.
type batch struct {
	api     *API
	ctx     context.Context // of the request
	lines   *lineReader
	decoder *wire.Decoder
	wait    time.Duration
	lease   *lease // of room for the results in a line

	index   int // of the first job of the chunk
	items   []batchItem
	specs   []jobhost.Spec // of the items without err, in their order
	answers []byte
}

// batchItem is a line of a chunk: a job that was taken, or why not.
type batchItem struct {
	receipt jobhost.Receipt
	problem *wire.Problem
}

// submitBatch serves POST /v1/jobs:batch.
func (a *API) submitBatch(w http.ResponseWriter, r *http.Request) error {
	wait, err := a.waitOf(r)
	if err != nil {
		return err
	}
	if err := takeOne(&a.batches, "batches under way"); err != nil {
		return err
	}
	defer a.batches.Free(1)
	c := http.NewResponseController(w)
	if err := c.EnableFullDuplex(); err != nil {
		return fmt.Errorf("answer while reading: %w", err)
	}
	b := &batch{
		api: a, ctx: r.Context(), wait: wait, lease: &callOf(w).lease, decoder: wire.NewDecoder(a.cfg.MaxPayload),
		lines: newLineReader(&pacedReader{r.Body, c, a.cfg.Limits.Stall}, a.maxBody),
	}
	for {
		readErr := b.read()
		b.submit()
		if len(b.items) > 0 || readErr == io.EOF {
			if err := b.answer(w, c); err != nil {
				return nil // the client is gone
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return &jobhost.Error{Code: jobhost.CodeInvalid, Message: "the body did not arrive", Cause: readErr}
		}
	}
}

// read reads the next chunk. io.EOF means that it is the last one.
func (b *batch) read() error {
	b.index += len(b.items)
	b.items, b.specs = b.items[:0], b.specs[:0]
	for size := 0; len(b.items) < batchJobs && size < batchBytes; {
		if len(b.items) > 0 && !b.lines.ready() {
			return nil
		}
		line, err := b.lines.next()
		switch {
		case errors.Is(err, errLongLine):
			b.add(jobhost.Spec{}, errBodyTooLarge)
			continue
		case err != nil && err != io.EOF:
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			b.add(b.decoder.Decode(line))
			size += len(line)
		}
		if err == io.EOF {
			return io.EOF
		}
	}
	return nil
}

// add adds a line to the chunk.
func (b *batch) add(spec jobhost.Spec, err error) {
	if err != nil {
		b.items = append(b.items, batchItem{problem: b.api.problem(b.ctx, err)})
		return
	}
	b.items = append(b.items, batchItem{})
	b.specs = append(b.specs, spec)
}

// submit hands the chunk to the server. An error of the chunk as a whole is
// that of each of its jobs: those of the chunks before were taken.
func (b *batch) submit() {
	if len(b.specs) == 0 {
		return
	}
	answers, err := b.api.server.SubmitBatch(b.ctx, b.specs)
	if err == nil && len(answers) != len(b.specs) {
		err = fmt.Errorf("submit batch: %d answers to %d jobs", len(answers), len(b.specs))
	}
	clear(b.specs) // the payloads belong to the server now
	var whole *wire.Problem
	if err != nil {
		whole = b.api.problem(b.ctx, err)
	}
	for i := range b.items {
		item := &b.items[i]
		switch {
		case item.problem != nil:
			continue
		case whole != nil:
			item.problem = whole
			continue
		case answers[0].Err != nil:
			item.problem = b.api.problem(b.ctx, answers[0].Err)
		}
		item.receipt, answers = answers[0].Receipt, answers[1:]
	}
}

// answer writes the answers to the chunk.
func (b *batch) answer(w http.ResponseWriter, c *http.ResponseController) error {
	until := time.Now().Add(b.wait)
	w.Header().Set("Content-Type", wire.NDJSON)
	for i := range b.items {
		item := &b.items[i]
		line := b.answers[:0]
		switch {
		case item.problem != nil:
			line = b.appendJSON(line, &wire.Answer{Index: b.index + i, Error: item.problem})
		case b.wait > 0:
			line = b.waited(line, b.index+i, item.receipt, until)
		default:
			line = wire.AppendAnswer(line, b.index+i, &item.receipt)
		}
		line = append(line, '\n')
		b.answers = line
		if err := c.SetWriteDeadline(time.Now().Add(b.api.cfg.Limits.Stall)); err != nil {
			return err
		}
		if _, err := w.Write(b.answers); err != nil {
			return err
		}
		if b.lease.release(); cap(b.answers) > keepMemory {
			b.answers = nil
		}
	}
	return c.Flush()
}

// waited waits for a job and appends the answer with it.
func (b *batch) waited(line []byte, index int, receipt jobhost.Receipt, until time.Time) []byte {
	answer := &wire.Answer{Index: index, ID: receipt.ID, State: receipt.State, Deduplicated: receipt.Deduplicated}
	job, err := awaitUntil(b.ctx, b.api, until, b.api.server.Wait, b.api.server.Job, receipt.ID)
	if err != nil {
		return b.appendJSON(line, &wire.Answer{Index: index, Error: b.api.problem(b.ctx, err)})
	}
	answer.Job = &job
	if job.State == jobhost.Succeeded {
		if answer.Results, err = b.smallResults(&job); err != nil {
			return b.appendJSON(line, &wire.Answer{Index: index, Error: b.api.problem(b.ctx, err)})
		}
	}
	return b.appendJSON(line, answer)
}

func (b *batch) appendJSON(line []byte, answer *wire.Answer) []byte {
	text, err := json.Marshal(answer)
	if err != nil {
		text, _ = json.Marshal(wire.Answer{Index: answer.Index, Error: b.api.problem(b.ctx, err)})
	}
	return append(line, text...)
}

// longest is how many times longer a result may be in JSON, where a character may
// become six, than it is; and it is there, too.
const longest = 7

// smallResults returns the results of a job, without their data when all of it together is more
// than one line should carry, or when other answers have taken the room for it.
func (b *batch) smallResults(job *jobhost.Job) ([]wire.TaskResult, error) {
	results, room := make([]wire.TaskResult, len(job.Tasks)), 0
	for i := range job.Tasks {
		room = min(room+job.Tasks[i].ResultSize, batchBytes)
	}
	if !b.lease.tryTake(int64(longest * room)) {
		room = 0
	}
	for i := range job.Tasks {
		results[i] = wire.TaskResult{Task: job.Tasks[i].Index, State: job.Tasks[i].State, Size: job.Tasks[i].ResultSize}
		if room -= job.Tasks[i].ResultSize; room < 0 {
			continue
		}
		result, err := b.api.server.Result(b.ctx, job.ID, job.Tasks[i].Index)
		if err != nil {
			return nil, err
		}
		results[i].Set(result.Data)
	}
	return results, nil
}
