package sealed

import (
	"encoding/binary"
	"io"
	"sync"
)

// Notes is what is known of the log of a database, and of the pages that it holds.
// A nil Notes knows nothing. Its methods may be called from many goroutines.
type Notes struct {
	witness *Witness // nil = only memory
	foreign func()   // called when another program has moved a part of the log, once

	mu         sync.Mutex // protects what follows
	generation Generation
	pageSize   int // 0 = nothing is known of the log's present generation
	frames     []frame
	latest     map[uint32]int // page → its last frame, counted from 1
	committed  int            // frames up to the end of the last commit that was written
	size       uint32         // pages of the database after it
	tail       [8]byte        // the checksum in the header of its last frame
	changed    int            // the first frame that isn't in the witness

	begun   int // the frame whose header was written last, and its page not yet; -1 = none
	page    uint32
	commit  uint32
	reader  io.ReaderAt // the log, for frames that others have written
	noticed bool        // foreign was called
	lenient bool        // every page is taken as it is
}

// frame is what is known of a frame of the log.
type frame struct {
	page   uint32
	size   uint32 // of the database in pages, at the end of a commit; else 0
	sum    uint64
	before int  // the frame before of the same page, counted from 1
	sealed bool // jobhost has moved it
}

// NewNotes returns notes that know nothing yet. The witness may be nil; foreign is called
// once, when another program turns out to have moved a part of the log.
func NewNotes(witness *Witness, foreign func()) *Notes {
	return &Notes{witness: witness, foreign: foreign, latest: map[uint32]int{}, begun: -1}
}

// moved reports whether a page without a seal holds what was written to the log.
func (n *Notes) moved(page uint32, sum uint64) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lenient {
		return true
	}
	if !n.hasLocked(page, sum) {
		// Another program may have written to the log, too.
		if n.loadLocked(int(^uint(0)>>1)) != nil || !n.hasLocked(page, sum) {
			return false
		}
	}
	n.noticeLocked()
	return true
}

func (n *Notes) hasLocked(page uint32, sum uint64) bool {
	for i := n.latest[page]; i > 0; i = n.frames[i-1].before {
		if n.frames[i-1].sum == sum {
			return true
		}
	}
	return false
}

// noticeLocked reports, once, that another program has moved a part of the log.
func (n *Notes) noticeLocked() {
	if !n.noticed && n.foreign != nil {
		n.noticed = true
		n.foreign()
	}
}

// sealed notes that a page was written to the database, with its seal.
func (n *Notes) sealed(page uint32, sum uint64) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if page == 1 {
		n.witness.setFirst(sum)
	}
	if i := n.latest[page]; i > 0 && n.frames[i-1].sum == sum {
		n.frames[i-1].sealed = true
	}
}

// header notes the header of a frame. SQLite leaves out its salts where it has replaced
// a frame before it in the same transaction; it writes all their headers again when that commits.
func (n *Notes) header(p []byte, off int64, f *log) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reader = f.File
	if g := Generation(p[8:16]); n.pageSize == 0 || g != n.generation && g != (Generation{}) {
		if err := n.adoptLocked(f); err != nil {
			return err
		}
	}
	i := frameIndex(off, n.pageSize)
	if i > len(n.frames) {
		if err := n.loadLocked(i); err != nil {
			return err
		}
	}
	n.begun, n.page, n.commit = i, binary.BigEndian.Uint32(p), binary.BigEndian.Uint32(p[4:])
	if n.commit != 0 {
		n.tail = [8]byte(p[16:24])
	}
	return nil
}

// content notes the page of a frame.
func (n *Notes) content(p []byte, off int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pageSize != len(p) {
		return
	}
	i := frameIndex(off, n.pageSize)
	if i == n.begun {
		n.begun = -1
		n.cutLocked(i)
		n.appendLocked(frame{page: n.page, size: n.commit, sum: sum(n.page, p)})
	} else if i < len(n.frames) {
		n.frames[i].sum, n.frames[i].sealed = sum(n.frames[i].page, p), false
		n.changed = min(n.changed, i)
	}
	if i < len(n.frames) && n.frames[i].size != 0 {
		n.flushLocked()
		n.committed, n.size = i+1, n.frames[i].size
	}
}

func (n *Notes) appendLocked(f frame) {
	f.before = n.latest[f.page]
	n.frames = append(n.frames, f)
	n.latest[f.page] = len(n.frames)
}

// cutLocked forgets the frames from i on, which are being overwritten.
func (n *Notes) cutLocked(i int) {
	for k := len(n.frames); k > i; k-- {
		f := n.frames[k-1]
		if f.before == 0 {
			delete(n.latest, f.page)
		} else {
			n.latest[f.page] = f.before
		}
	}
	n.frames = n.frames[:min(i, len(n.frames))]
	n.changed = min(n.changed, i)
	if n.committed <= i {
		return
	}
	for n.committed = i; n.committed > 0 && n.frames[n.committed-1].size == 0; n.committed-- {
	}
	n.size = 0
	if n.committed > 0 {
		n.size = n.frames[n.committed-1].size
	}
}

// flushLocked writes what is new into the witness.
func (n *Notes) flushLocked() {
	n.witness.put(n.generation, n.changed, n.frames[n.changed:])
	n.changed = len(n.frames)
}

// begin notes that SQLite restarts the log. Everything that was in it is in the
// database then; what others have moved gets its seal before it is forgotten.
func (n *Notes) begin(header []byte, f *log) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reader = f.File
	next := generationOf(header)
	size := int(binary.BigEndian.Uint32(header[8:]))
	if n.pageSize == size && n.generation == next {
		n.cutLocked(0) // nothing of it was committed
		return nil
	}
	if err := n.sealLocked(base{f.db.File}, size); err != nil {
		return err
	}
	n.resetLocked(next, size)
	return n.witness.begin(next)
}

func (n *Notes) resetLocked(g Generation, pageSize int) {
	if i := n.latest[1]; i > 0 && i <= n.committed {
		n.witness.setFirst(n.frames[i-1].sum)
	}
	n.generation, n.pageSize = g, pageSize
	n.frames = n.frames[:0]
	clear(n.latest)
	n.committed, n.size, n.changed, n.begun = 0, 0, 0, -1
}

// SealMoved seals the pages of the log that another program has moved into the database, when all
// of it is there and the log is empty: it isn't restarted then, which would seal them.
func (n *Notes) SealMoved(db Storage) error {
	header := make([]byte, headerBytes)
	if got, err := db.ReadAt(header, 0); got < headerBytes {
		return ignoreEOF(err)
	}
	if !isHeader(header, 0) || formOf(header) != present {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sealLocked(db, pageSizeOf(header))
}

// sealLocked seals the pages of the log that another program has moved.
func (n *Notes) sealLocked(db Storage, pageSize int) error {
	count := 0
	for page, i := range n.latest {
		for i > n.committed { // it was undone
			i = n.frames[i-1].before
		}
		if i == 0 || page > n.size || n.frames[i-1].sealed {
			continue
		}
		if _, err := sealAnew(db, page, pageSize, n.frames[i-1].sum); err != nil {
			return err
		}
		count++
	}
	if count == 0 {
		return nil
	}
	return db.Sync()
}

// adoptLocked begins with a log that was there already.
func (n *Notes) adoptLocked(f *log) error {
	header := make([]byte, logHeader)
	if _, err := f.File.ReadAt(header, 0); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(header[8:]))
	if err := n.sealLocked(base{f.db.File}, size); err != nil {
		return err
	}
	n.resetLocked(generationOf(header), size)
	return n.witness.begin(n.generation)
}

// loadLocked notes frames that others have written to the log, up to a number of them.
func (n *Notes) loadLocked(upTo int) error {
	if n.reader == nil || n.pageSize == 0 {
		return nil
	}
	buf := make([]byte, frameHeader+n.pageSize)
	for i := len(n.frames); i < upTo; i++ {
		whole, err := readFrame(n.reader, i, buf, n.generation)
		if err != nil || !whole {
			return err
		}
		page := binary.BigEndian.Uint32(buf)
		n.appendLocked(frame{page: page, size: binary.BigEndian.Uint32(buf[4:]), sum: sum(page, buf[frameHeader:])})
		if n.frames[i].size != 0 {
			n.committed, n.size, n.tail = i+1, n.frames[i].size, [8]byte(buf[16:24])
		}
	}
	return nil
}

// Acknowledge notes that the last commit is there to stay, before callers are answered. If it was
// synced it survives a loss of power, too.
func (n *Notes) Acknowledge(synced bool) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.witness.acknowledge(Mark{Generation: n.generation, Frames: n.committed, Tail: n.tail}, synced)
}

// Notice reports, once, that another program has moved a part of the log.
func (n *Notes) Notice() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.noticeLocked()
}

// Last returns the end of the last commit.
func (n *Notes) Last() Mark {
	if n == nil {
		return Mark{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return Mark{Generation: n.generation, Frames: n.committed, Tail: n.tail}
}

// Undo forgets what a transaction has written to the log which did not become a commit: the log
// ends for SQLite where it ended before, though the file may have more, with the end of a commit whose
// write or sync has failed.
func (n *Notes) Undo(before Mark) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.generation != before.Generation {
		before = Mark{} // the log was restarted since, and nothing of it is a commit
	}
	n.cutLocked(before.Frames)
	n.tail = before.Tail
}

// Lenient lets pages be read of which nothing is known, for a check of the whole.
func (n *Notes) Lenient(is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lenient = is
}
