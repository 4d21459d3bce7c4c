package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// resultWriter writes what workers returned, on stdout or to a file.
type resultWriter struct{ *env }

// end writes the results of a job on stdout, or returns why there are none.
func (e resultWriter) end(ctx context.Context, server jobhost.Server, end *outcome, how layout) error {
	if end.err != nil {
		if e.wantsJSON() {
			return errors.Join(e.json(end), end.err)
		}
		return end.err
	}
	if end.tasks > 1 {
		how = perLine
	}
	for task := range end.tasks {
		if end.copied(task) && !e.wantsJSON() && !e.stdout.terminal {
			if err := e.fetch(ctx, server, end.ID, task, ""); err != nil {
				return fmt.Errorf("fetch the result of job %s, task %d: %w", end.ID, task, err)
			}
			if how == perLine {
				fmt.Fprintln(e.stdout)
			}
			continue
		}
		if task > 0 || end.copied(task) {
			result, err := server.Result(ctx, end.ID, task)
			if err != nil {
				return fmt.Errorf("fetch the result of job %s, task %d: %w", end.ID, task, err)
			}
			end.Task, end.data = task, result.Data
		}
		if err := e.result(end, how); err != nil {
			return err
		}
	}
	return nil
}

func (e resultWriter) result(end *outcome, how layout) error {
	if e.wantsJSON() {
		end.Result, end.Base64 = nil, nil
		if utf8.Valid(end.data) {
			text := string(end.data)
			end.Result = &text
		} else {
			end.Base64 = end.data
		}
		return e.json(end)
	}
	if err := e.data(end.ID, end.Task, end.data, how); err != nil {
		// The job did succeed: what a terminal can't show is no failure of it.
		e.report(err)
	}
	return nil
}

// data writes a result on stdout.
func (e resultWriter) data(id string, task int, data []byte, how layout) error {
	return e.bytes("the result", resultHint(id, task), data, how)
}

// resultHint says how to have a result in a file.
func resultHint(id string, task int) string {
	if task > 0 {
		id += fmt.Sprintf(" --task %d", task)
	}
	return "jobhost job result " + id + " -O FILE"
}

// bytes writes something on stdout. A terminal gets nothing but text,
// since other bytes could be commands to it.
func (e resultWriter) bytes(what, hint string, data []byte, how layout) error {
	if e.stdout.terminal {
		if !text.IsText(data) {
			return &jobhost.Error{
				Code:    jobhost.CodeInvalid,
				Message: fmt.Sprintf("%s of %s is not text that a terminal can show", what, size(len(data))),
				Hint:    hint,
			}
		}
		if len(data) > 0 {
			how = perLine
		}
	}
	if how == perLine && !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data[:len(data):len(data)], '\n')
	}
	_, _ = e.stdout.Write(data) // the stream keeps the error
	return nil
}

// fetch writes a result of any size to a file, or else to stdout.
func (e resultWriter) fetch(ctx context.Context, server jobhost.Server, id string, task int, file string) error {
	content, err := server.OpenResult(ctx, id, task)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return e.content("the result", resultHint(id, task), content, file)
}

// content writes a content of any size to a file, or else to stdout. Only a
// terminal, which is shown nothing but text, must have it whole.
func (e resultWriter) content(what, hint string, content jobhost.Content, file string) error {
	switch {
	case file != "":
		return e.file(what, content, file)
	case !e.stdout.terminal:
		_, err := io.Copy(e.stdout, content)
		return err
	case content.Size > jobhost.MaxWhole:
		return &jobhost.Error{
			Code: jobhost.CodeTooLarge, Message: fmt.Sprintf("%s of %s is more than a terminal is for", what, size(int(content.Size))), Hint: hint,
		}
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return e.bytes(what, hint, data, asIs)
}

// file writes a content to a file, which is removed again if it did not
// come to its end.
func (e resultWriter) file(what string, content io.Reader, file string) error {
	name := e.path(file)
	f, err := os.Create(name) // as the umask says, like any output of a command
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	_, err = io.Copy(f, content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		if info, statErr := os.Stat(name); statErr == nil && info.Mode().IsRegular() {
			_ = os.Remove(name)
		}
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
