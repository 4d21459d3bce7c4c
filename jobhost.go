// Package jobhost defines the vocabulary of a job server whose workers are
// sandboxed WebAssembly plugins: what a job is, which states it passes through,
// how it can end and what a server can be asked. It contains no machinery:
// package host does the work, cmd/jobhost is the program, and package client
// talks to a server over HTTP.
//
// A job names a worker and carries a payload. It consists of one or more tasks,
// numbered from 0, which are queued, leased, run and retried independently; one
// run of a task is an attempt. An acknowledged submit is durable, and every
// acknowledged job reaches exactly one terminal state.
package jobhost

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/jobhost/jobhost/internal/text"
)

// The maximum lengths of names, in bytes.
const (
	MaxIDBytes     = 128
	MaxWorkerBytes = 63
)

// NewID returns a fresh job id, a UUID of version 7, so that later ids sort
// later.
func NewID() string {
	// NewV7 fails only when the system has no randomness, and NewString would panic then too.
	return uuid.Must(uuid.NewV7()).String()
}

// CheckID returns an error with code [CodeInvalid] unless id is a valid job id:
// 1 to 128 letters, digits, dots, underscores and dashes, beginning with a
// letter or digit.
func CheckID(id string) error {
	if len(id) <= MaxIDBytes && isName(id, true) {
		return nil
	}
	return &Error{
		Code:    CodeInvalid,
		Field:   "id",
		Message: fmt.Sprintf("%s is not a job id", clip(id)),
		Hint:    "use 1 to 128 of A-Z a-z 0-9 . _ - beginning with a letter or digit, or leave it out to get one",
	}
}

// CheckWorker returns an error with code [CodeInvalid] unless name is a valid
// worker name: 1 to 63 lower-case letters, digits, dots, underscores and
// dashes, beginning with a letter or digit.
func CheckWorker(name string) error {
	if len(name) <= MaxWorkerBytes && isName(name, false) {
		return nil
	}
	message := fmt.Sprintf("%s is not a worker name", clip(name))
	if name == "" {
		message = "no worker is named"
	}
	return &Error{
		Code:    CodeInvalid,
		Field:   "worker",
		Message: message,
		Hint:    "use 1 to 63 of a-z 0-9 . _ - beginning with a letter or digit",
	}
}

// isName reports whether s consists of letters, digits, dots, underscores and
// dashes and begins with a letter or digit. Such names are safe in paths,
// headers, labels, log lines and file names, and each can be written in only one
// way.
func isName(s string, upper bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z' && upper:
		case (c == '.' || c == '_' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return s != ""
}

// clip quotes input for an error message: shortened, and escaped so that no
// control character reaches a terminal.
func clip(s string) string {
	const most = 40
	return text.Quote(s, most)
}
