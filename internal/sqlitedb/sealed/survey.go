package sealed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Survey is what a look at all pages of a database found.
type Survey struct {
	Pages uint32
	// Moved are the pages without a seal that hold what was written to the log, so that
	// another program has moved them; Unknown are those of which nothing is known.
	Moved, Unknown []Page
}

// Page is a page with what its seal should say.
type Page struct {
	Number uint32
	sum    uint64
}

// Look reads all pages of a database of which nobody writes, and compares them with
// their seals and with what was noted.
func (n *Notes) Look(db io.ReaderAt) (Survey, error) {
	header := make([]byte, headerBytes)
	if got, err := db.ReadAt(header, 0); got < headerBytes {
		if err == nil || errors.Is(err, io.EOF) {
			return Survey{}, nil
		}
		return Survey{}, fmt.Errorf("look at all pages: %w", err)
	}
	size := pageSizeOf(header)
	if !isHeader(header, 0) || formOf(header) != present || !isPage(size) {
		return Survey{}, nil
	}
	return n.lookAt(db, size)
}

func (n *Notes) lookAt(db io.ReaderAt, size int) (s Survey, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	buf := make([]byte, (1<<20)/size*size)
	for {
		got, err := db.ReadAt(buf, int64(s.Pages)*int64(size))
		for p := buf[:got]; len(p) >= size; p = p[size:] {
			s.Pages++
			page := Page{s.Pages, sum(s.Pages, p[:size])}
			switch {
			case isSealed(page.Number, p[:size], page.sum), page.Number == lockPage(size):
			case n.hasLocked(page.Number, page.sum):
				s.Moved = append(s.Moved, page)
			default:
				s.Unknown = append(s.Unknown, page)
			}
		}
		if errors.Is(err, io.EOF) || (err == nil && got < len(buf)) {
			n.noticed = len(s.Moved)+len(s.Unknown) > 0 // the caller tells
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("look at all pages: %w", err)
		}
	}
}

// Seal seals pages of a database as they were when Look read them, and syncs it.
func Seal(db Storage, pages []Page) error {
	header := make([]byte, headerBytes)
	if _, err := db.ReadAt(header, 0); err != nil || len(pages) == 0 {
		return err
	}
	size := pageSizeOf(header)
	for _, p := range pages {
		end := make([]byte, size)
		seal(p.Number, end, p.sum)
		if _, err := db.WriteAt(end[size-Bytes:], int64(p.Number)*int64(size)-Bytes); err != nil {
			return fmt.Errorf("seal page %d: %w", p.Number, err)
		}
	}
	return db.Sync()
}

// Recall notes what the witness knows of the log that it was told of last. Complete is
// false when it doesn't know all of what was acknowledged.
func (n *Notes) Recall() (complete bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.witness
	frames, err := w.entries(w.found.generation)
	if err != nil {
		return false, err
	}
	for _, f := range frames {
		n.appendLocked(f)
		if f.size != 0 {
			n.committed, n.size = len(n.frames), f.size
		}
	}
	n.generation, n.changed = w.found.generation, len(n.frames)
	all := w.found.written.Generation != w.found.generation || len(frames) >= w.found.written.Frames
	return w.found.closed || w.SameBoot() && all, nil
}

// pageSizeOf reads the size of pages from the header of a database.
func pageSizeOf(header []byte) int {
	if size := int(binary.BigEndian.Uint16(header[16:])); size != 1 {
		return size
	}
	return 65536
}

// lockPage is the page that SQLite never uses, since its locks are there.
func lockPage(size int) uint32 { return uint32(0x40000000/size) + 1 }
