package sealed

import (
	"errors"
	"io"
)

// The format of a write-ahead log: https://sqlite.org/fileformat2.html#walformat
const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // or that plus 1: the checksums are of big-endian words
)

// log is a write-ahead log. SQLite writes a frame in two pieces, its header and its
// page; a page alone replaces that of a frame of the same transaction.
type log struct {
	file
	notes *Notes
	db    *database
}

// WriteAt implements [vfs.File]. What is noted is noted before it is written: what is
// in the log is always known, what is known may not be in it.
func (f *log) WriteAt(p []byte, off int64) (int, error) {
	var err error
	switch {
	case off == 0 && len(p) == logHeader:
		err = f.notes.begin(p, f)
	case len(p) == frameHeader:
		err = f.notes.header(p, off, f)
	case isPage(len(p)):
		f.notes.content(p, off)
	}
	if err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

// Generation is what distinguishes a log from the one before it in the same file, and from that of another database: its salts.
type Generation [8]byte

// generationOf reads it from the header of a log.
func generationOf(header []byte) Generation { return Generation(header[16:24]) }

// frameIndex returns which frame is at a place of the log, counted from 0.
func frameIndex(off int64, pageSize int) int {
	return int((off - logHeader) / int64(frameHeader+pageSize))
}

// frameOffset is where a frame begins.
func frameOffset(i, pageSize int) int64 { return logHeader + int64(i)*int64(frameHeader+pageSize) }

// readFrame reads a frame of a log, if there is one of its generation.
func readFrame(f io.ReaderAt, i int, buf []byte, g Generation) (bool, error) {
	n, err := f.ReadAt(buf, frameOffset(i, len(buf)-frameHeader))
	if n < len(buf) {
		if err == nil || errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	return Generation(buf[8:16]) == g, nil
}
