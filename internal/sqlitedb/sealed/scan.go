package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Log is what a file says that should be a write-ahead log.
type Log struct {
	// Whole is false when its header is not what SQLite writes. One of at most the
	// length of a header is whole: nothing was ever synced in it.
	Whole      bool
	Generation Generation
	PageSize   int
	// Good is how many frames can be read, Committed up to where they are commits, and End
	// the place where the good ones end.
	Good, Committed int
	End             int64
	// Tail is the checksum in the header of the last of the frames that Scan was asked about; zero
	// without as many good ones.
	Tail   [8]byte
	frames []frame // the good ones
	// Lost is how many whole ends of commits of this log lie behind its first bad frame.
	Lost int
}

// Scan reads a log, frame by frame, since it may be of gigabytes. SQLite takes the
// first frame that is not right for the end; so does Scan, and looks at what follows.
// The Tail of the first so many frames is returned.
func Scan(file io.Reader, frames int) (Log, error) {
	header := make([]byte, logHeader+1)
	if whole, err := readFull(file, header); !whole {
		return Log{Whole: true}, err
	}
	l := Log{PageSize: int(binary.BigEndian.Uint32(header[8:])), Generation: generationOf(header)}
	magic := binary.BigEndian.Uint32(header)
	sum := checksum{order: binary.LittleEndian}
	if magic&1 != 0 {
		sum.order = binary.BigEndian
	}
	sum.add(header[:24])
	l.Whole = magic&^1 == logMagic && isPage(l.PageSize) && sum.is(header[24:logHeader])
	if !l.Whole {
		return l, nil
	}
	err := l.scanFrames(io.MultiReader(bytes.NewReader(header[logHeader:]), file), sum, frames)
	return l, err
}

func (l *Log) scanFrames(file io.Reader, chain checksum, frames int) error {
	raw := make([]byte, frameHeader+l.PageSize)
	for intact := true; ; chain.from(raw[16:frameHeader]) {
		if whole, err := readFull(file, raw); !whole {
			return err
		}
		ours := Generation(raw[8:16]) == l.Generation
		commit := binary.BigEndian.Uint32(raw[4:]) != 0
		chain.add(raw[:8])
		chain.add(raw[frameHeader:])
		// A checksum goes on from the one in the frame before. So behind a bad frame it is seen which ones
		// are whole; of others a part may be of the log before this one.
		good := ours && chain.is(raw[16:frameHeader])
		if intact = intact && good; !intact {
			if good && commit {
				l.Lost++
			}
			continue
		}
		l.Good++
		page := binary.BigEndian.Uint32(raw)
		l.frames = append(l.frames, frame{page: page, size: binary.BigEndian.Uint32(raw[4:]), sum: sum(page, raw[frameHeader:])})
		l.End = frameOffset(l.Good, l.PageSize)
		if commit {
			l.Committed = l.Good
		}
		if l.Good == frames {
			l.Tail = [8]byte(raw[16:frameHeader])
		}
	}
}

// readFull fills the buffer, and reports whether the file was long enough.
func readFull(file io.Reader, b []byte) (whole bool, err error) {
	_, err = io.ReadFull(file, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil, err
}

// checksum is that of a log: it goes on from frame to frame.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

// from goes on from a checksum that was written.
func (c *checksum) from(b []byte) {
	c.s0, c.s1 = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
}

func (c *checksum) is(b []byte) bool {
	return c.s0 == binary.BigEndian.Uint32(b) && c.s1 == binary.BigEndian.Uint32(b[4:])
}
