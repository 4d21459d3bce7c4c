package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
)

// submittedLine is what submit --lines writes as JSON for a job that it does
// not wait for.
type submittedLine struct {
	Line int `json:"line"`
	jobhost.Receipt
}

// print writes the entries in the order of the lines, as soon as they are ready.
func (r *lineRun) print(ctx context.Context) error {
	// Lines gather here while the next one is ready, since a write for each is slow.
	var out bytes.Buffer
	env := *r.env
	env.stdout = &stream{w: &out, terminal: r.env.stdout.terminal}
	flush := func() error {
		_, err := out.WriteTo(r.env.stdout)
		return err
	}
	for {
		entry, ok, err := r.nextEntry(ctx, &out, flush)
		if err != nil {
			return err
		}
		if !ok {
			return flush()
		}
		if err := r.printEntry(ctx, &env, entry); err != nil {
			return err
		}
	}
}

// nextEntry returns the next entry when it is ready; ok is false after the last.
func (r *lineRun) nextEntry(ctx context.Context, out *bytes.Buffer, flush func() error) (next *lineEntry, ok bool, err error) {
	const most = 64 << 10
	select {
	case next, ok = <-r.entries:
	default:
		if err := flush(); err != nil {
			return nil, false, err
		}
		next, ok = <-r.entries // closed when ctx ends
	}
	if !ok {
		return nil, false, ctx.Err()
	}
	select {
	case <-next.ready:
		if out.Len() >= most {
			err = flush()
		}
		return next, true, err
	default:
	}
	if err := flush(); err != nil {
		return nil, false, err
	}
	select {
	case <-next.ready:
		return next, true, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

func (r *lineRun) printEntry(ctx context.Context, e *env, entry *lineEntry) error {
	end := entry.end
	if end == nil { // not waited for
		r.submitted++
		if e.wantsJSON() {
			return e.json(submittedLine{Line: entry.line, Receipt: entry.receipt})
		}
		_, err := fmt.Fprintln(e.stdout, printable(entry.receipt.ID))
		return err
	}
	if entry.receipt.ID != "" {
		r.submitted++
	}
	end.Line, end.Deduplicated = entry.line, entry.receipt.Deduplicated
	if end.err == nil {
		r.succeeded++
		return resultWriter{e}.end(ctx, r.server, end, perLine)
	}
	r.failed++
	if e.wantsJSON() {
		return e.json(end)
	}
	e.report(fmt.Errorf("line %d: %w", entry.line, end.err))
	return nil
}
