package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// pacedReader gives every read of a body its own time.
type pacedReader struct {
	body io.Reader
	c    *http.ResponseController
	time time.Duration
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if err := p.c.SetReadDeadline(time.Now().Add(p.time)); err != nil {
		return 0, err
	}
	return p.body.Read(b)
}

// lineReader reads lines of a bounded length.
type lineReader struct {
	from *bufio.Reader
	long []byte // holds a line that is longer than the reader's buffer
	most int
}

// lineBuffer is what is read at once, in bytes.
const lineBuffer = 64 << 10

var errLongLine = errors.New("the line is too long")

func newLineReader(r io.Reader, most int) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(r, lineBuffer), most: most}
}

// ready reports whether there is a whole line that can be had without waiting.
func (l *lineReader) ready() bool {
	buffered, _ := l.from.Peek(l.from.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

// next returns the next line, which is good until the next call. What is left
// at the end without a newline comes with io.EOF. A line that is too long is
// skipped, with errLongLine for it.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.from.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	tooLong := false
	for l.long = l.long[:0]; ; line, err = l.from.ReadSlice('\n') {
		tooLong = tooLong || len(l.long)+len(line) > l.most
		if !tooLong {
			l.long = append(l.long, line...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case tooLong && (err == nil || err == io.EOF):
			return nil, errLongLine // the end comes again
		default:
			return l.long, err
		}
	}
}
