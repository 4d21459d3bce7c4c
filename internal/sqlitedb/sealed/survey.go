package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Survey is what a look at all pages of a database found.
type Survey struct {
	Pages, Missing uint32
	// Moved are the pages without a seal that hold what was written to the log, so that
	// another program has moved them; Unknown are those of which nothing is known.
	Moved, Unknown []Page
}

// Page is a page with what its seal should say.
type Page struct {
	Number uint32
	sum    uint64
}

// Look reads all pages of a database that no program is writing to, and compares them with
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
	pages := pagesOf(header)
	s, err := n.lookAt(db, size, pages)
	if pages != noPages && err == nil {
		s.Missing = pages - s.Pages
	}
	return s, err
}

// noPages is a number that no database has.
const noPages = 1<<32 - 1

// pagesOf returns how many pages a database says it has; what follows is not read by SQLite.
func pagesOf(header []byte) uint32 {
	pages := binary.BigEndian.Uint32(header[28:])
	if pages == 0 || !bytes.Equal(header[24:28], header[92:96]) {
		return noPages
	}
	return pages
}

func (n *Notes) lookAt(db io.ReaderAt, size int, pages uint32) (s Survey, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	buf := make([]byte, (1<<20)/size*size)
	for {
		got, err := db.ReadAt(buf, int64(s.Pages)*int64(size))
		for p := buf[:got]; len(p) >= size && s.Pages < pages; p = p[size:] {
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
		if errors.Is(err, io.EOF) || err == nil && got < len(buf) || s.Pages == pages {
			n.noticed = len(s.Moved)+len(s.Unknown) > 0 // the caller reports it
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

// Recall notes what the witness knows of the log that it was given last. Complete is
// false when it doesn't know all of what was acknowledged.
func (n *Notes) Recall() (complete bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.witness
	g, frames, err := w.recall()
	if err != nil {
		return false, err
	}
	for _, f := range frames {
		n.appendLocked(f)
		if f.size != 0 {
			n.committed, n.size = len(n.frames), f.size
		}
	}
	n.generation, n.changed = g, len(n.frames)
	all := w.found.written.Generation != g || len(frames) >= w.found.written.Frames
	return w.found.closed || w.SameBoot() && all, nil
}

// IsOther reports whether a database with seals is not the one that was noted, by its first page.
func (n *Notes) IsOther(db io.ReaderAt) (bool, error) {
	header := make([]byte, headerBytes)
	if got, err := db.ReadAt(header, 0); got < headerBytes {
		return false, ignoreEOF(err)
	}
	if !isHeader(header, 0) || formOf(header) == broken || !isPage(pageSizeOf(header)) {
		return true, nil
	}
	s, err := firstSum(db)
	if err != nil {
		return errors.Is(err, io.EOF), ignoreEOF(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.witness.found.first != 0 && s != n.witness.found.first && !n.hasLocked(1, s), nil
}

// firstSum returns the checksums of the first page of a database.
func firstSum(db io.ReaderAt) (uint64, error) {
	header := make([]byte, headerBytes)
	if _, err := db.ReadAt(header, 0); err != nil {
		return 0, err
	}
	p := make([]byte, pageSizeOf(header))
	if _, err := db.ReadAt(p, 0); err != nil {
		return 0, err
	}
	return sum(1, p), nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Lost returns the pages of a database that are older than what was acknowledged of them, when the
// log is gone. Complete is whether all is noted of the log; if not, a page without a seal
// may be newer than what is noted.
func (n *Notes) Lost(db io.ReaderAt, complete bool) (lost []Page, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.witness.Acknowledged()
	if m.Generation != n.generation {
		return nil, nil // everything was in the database when the log was restarted
	}
	latest := map[uint32]int{}
	frames := min(m.Frames, len(n.frames))
	for i := range frames {
		latest[n.frames[i].page] = i
		if n.frames[i].size != 0 {
			n.size = n.frames[i].size
		}
	}
	header := make([]byte, headerBytes)
	if _, err := db.ReadAt(header, 0); err != nil {
		return nil, fmt.Errorf("look for what was acknowledged: %w", err)
	}
	p := make([]byte, pageSizeOf(header))
	for page, last := range latest {
		if page > n.size {
			continue // it was given back
		}
		if _, err := db.ReadAt(p, int64(page-1)*int64(len(p))); errors.Is(err, io.EOF) {
			clear(p)
		} else if err != nil {
			return nil, fmt.Errorf("look for what was acknowledged: %w", err)
		}
		s := sum(page, p)
		if n.isFromLocked(page, s, last) || !complete && !isSealed(page, p, s) && !n.hasLocked(page, s) {
			continue
		}
		lost = append(lost, Page{page, s})
	}
	return lost, nil
}

// isFromLocked reports whether a page is as it was in a frame, or in a later one.
func (n *Notes) isFromLocked(page uint32, sum uint64, frame int) bool {
	for i := n.latest[page]; i > frame; i = n.frames[i-1].before {
		if n.frames[i-1].sum == sum {
			return true
		}
	}
	return false
}

// Forget forgets what was in the log, since all of it is in the database, with seals.
func (n *Notes) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resetLocked(n.generation, 0)
}

// Adopt notes what is in a log that was there when the database was opened, so that all of it is known
// before it is moved.
func (n *Notes) Adopt(l *Log) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resetLocked(l.Generation, 0)
	for _, f := range l.frames[:l.Committed] {
		n.appendLocked(f)
		if f.size != 0 {
			n.committed, n.size = len(n.frames), f.size
		}
	}
	n.witness.put(n.generation, 0, n.frames)
	n.changed = len(n.frames)
	return n.witness.begin(n.generation)
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

// Apply writes the pages of the good commits of a log into a copy of its database.
func Apply(db io.WriterAt, log io.ReaderAt, l Log) error {
	p := make([]byte, l.PageSize)
	for i, f := range l.frames[:l.Committed] {
		if _, err := log.ReadAt(p, frameOffset(i, l.PageSize)+frameHeader); err != nil {
			return fmt.Errorf("read frame %d of the log: %w", i, err)
		}
		if _, err := db.WriteAt(p, int64(f.page-1)*int64(l.PageSize)); err != nil {
			return fmt.Errorf("write page %d: %w", f.page, err)
		}
	}
	return nil
}
