package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jobhost/jobhost"
)

// mostPayload is the most that any host accepts, so more need not be read.
const mostPayload = 64 << 20

func tooLarge(what string, most int) error {
	return &jobhost.Error{
		Code:    jobhost.CodeTooLarge,
		Message: fmt.Sprintf("%s is larger than %s", what, size(most)),
	}
}

// readPayload reads all of r, up to most bytes.
func readPayload(r io.Reader, most int) ([]byte, error) {
	// One byte more than allowed shows that there are more.
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the payload: %w", err)
	case len(data) > most:
		return nil, tooLarge("the payload", most)
	}
	return data, nil
}

// open returns the file of that name, or stdin.
func (e *env) open(name string, isFile bool) (io.ReadCloser, error) {
	if !isFile {
		return io.NopCloser(e.stdin), nil
	}
	f, err := os.Open(e.path(name))
	if err != nil {
		return nil, &usageError{cause: fmt.Errorf("read the payload: %w", err)}
	}
	return f, nil
}

// payload opens what PAYLOAD, @FILE or - stands for.
func (e *env) payload(source string) (io.ReadCloser, error) {
	name, isFile := strings.CutPrefix(source, "@")
	if !isFile && source != "-" {
		return io.NopCloser(strings.NewReader(source)), nil
	}
	return e.open(name, isFile)
}

// jsonInput reads what a flag gives: JSON as it stands there, or any bytes of @FILE or stdin.
func (e *env) jsonInput(flag, text string, most int) ([]byte, error) {
	if text == "-" || len(text) > 0 && text[0] == '@' {
		file, err := e.open(text[1:], text != "-")
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readPayload(file, most)
	}
	if text != "" && !json.Valid([]byte(text)) {
		return nil, &usageError{cause: &jobhost.Error{
			Code: jobhost.CodeInvalid, Message: fmt.Sprintf("%s is not JSON: %s", flag, clip(text)),
			Hint: `text needs quotes of its own: '"text"'; @FILE and - take any bytes`,
		}}
	}
	return []byte(text), nil
}

// lineReader reads payloads line by line.
type lineReader struct {
	r    *bufio.Reader
	most int // bytes of a line
}

func newLineReader(r io.Reader, most int) *lineReader {
	// A large buffer makes full batches of a file's lines.
	return &lineReader{r: bufio.NewReaderSize(r, 1<<20), most: most}
}

// next returns the next line without its end, and [io.EOF] after the last.
// The last line need not have an end.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > l.most+len("\r\n"):
			return nil, tooLarge("a line", l.most)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		case err == nil:
			line = bytes.TrimSuffix(line[:len(line)-1], []byte("\r"))
		}
		if len(line) > l.most {
			return nil, tooLarge("a line", l.most)
		}
		return line, nil
	}
}

// waiting reports whether another line is there already, so that reading it
// won't block.
func (l *lineReader) waiting() bool {
	buffered, _ := l.r.Peek(l.r.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}
