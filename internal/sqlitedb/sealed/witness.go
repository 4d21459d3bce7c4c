package sealed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// Storage is the file of a witness.
type Storage interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

// Witness is a small file beside a database that says what was in its log: up to where
// commits were acknowledged, and the number and checksums of the page in each frame.
// It is written without being synced, which costs next to nothing. After a crash of the process it
// says exactly what was there. After a loss of power it may be older, but whatever is in
// it is true: a mark is written after what it describes was synced, and every piece of it
// has a checksum of its own.
//
//	0      mark    two of them, written in turn
//	4096   entry   20 bytes for each frame of the log's present generation
//
// A nil Witness keeps nothing. Callers serialize its methods, but for those of [Notes].
type Witness struct {
	mu    sync.Mutex // protects what follows
	file  Storage
	boot  [16]byte
	turn  uint64
	last  state // what was written last
	found state // what was there when it was opened
}

// Mark is a place in a log up to which commits were acknowledged.
type Mark struct {
	Generation Generation
	Frames     int     // up to its end
	Tail       [8]byte // the checksum in the header of the last one
}

// state is what a slot holds.
type state struct {
	boot       [16]byte
	generation Generation // the log's last one, which it may not have begun
	previous   Generation // the one before
	written    Mark       // acknowledged, and there unless the power was lost
	synced     Mark       // acknowledged, and synced before that
	stamp      Stamp
	first      uint64 // the checksums of the database's first page
	settled    bool   // the log of the generation is gone: all of it is in the database
	served     bool   // commits were acknowledged
	closed     bool   // the host has ended, and nothing was in the log
	relaxed    bool   // commits are acknowledged before they are synced
}

// Stamp shows whether a file was written since: by its size, and the time in
// nanoseconds when it was changed last. The zero Stamp says nothing.
type Stamp struct{ Size, Changed int64 }

const (
	witnessMagic = "jhwit\x00\x00\x01"
	slotBytes    = 512
	slotUsed     = len(witnessMagic) + 8 + 16 + 8 + 8 + 2*markBytes + 16 + 8 + 1 + 4
	markBytes    = 8 + 8 + 8
	entriesAt    = 4096
	entryBytes   = 20
)

// OpenWitness reads what a file says, and goes on with it. Boot is what differs after
// each start of the machine.
func OpenWitness(file Storage, boot [16]byte) (*Witness, error) {
	w := &Witness{file: file, boot: boot}
	for i := range int64(2) {
		slot := make([]byte, slotBytes)
		n, err := file.ReadAt(slot, i*slotBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the witness of the log: %w", err)
		}
		if turn, s, ok := parseSlot(slot[:n]); ok && turn > w.turn {
			w.turn, w.found = turn, s
		}
	}
	w.last = w.found
	w.last.closed = false
	return w, nil
}

// Close closes the file.
func (w *Witness) Close() error {
	if w == nil {
		return nil
	}
	return w.file.Close()
}

// Knows reports whether anything was in the file when it was opened.
func (w *Witness) Knows() bool { return w != nil && w.turn > 0 }

// Served reports whether any commit was ever acknowledged.
func (w *Witness) Served() bool { return w != nil && w.found.served }

// SameBoot reports whether the machine was not started since the witness was written, so that it is complete.
func (w *Witness) SameBoot() bool { return w.found.boot == w.boot }

// Recognizes reports whether a log is the one that the witness was given before it was opened.
func (w *Witness) Recognizes(g Generation) bool {
	return g == w.found.generation || g == w.found.previous
}

// Acknowledged returns up to where commits must be there.
func (w *Witness) Acknowledged() Mark {
	if w.SameBoot() {
		return w.found.written
	}
	return w.found.synced
}

// Exact reports whether Acknowledged is to the frame what was acknowledged, and not the least of it.
func (w *Witness) Exact() bool { return w.Knows() && w.SameBoot() }

// Relaxed reports whether commits of the log were acknowledged before they were synced.
func (w *Witness) Relaxed() bool { return w.found.relaxed }

// Relax notes whether commits are acknowledged before they are synced. It is written with what follows.
func (w *Witness) Relax(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.relaxed = is
}

// Settled reports whether the log of the last generation was moved into the database, and emptied, by jobhost.
func (w *Witness) Settled() bool { return w.found.settled }

// Stamp returns what the database was like when only jobhost had written to it.
func (w *Witness) Stamp() Stamp { return w.found.stamp }

// put writes entries for frames from the first on. That it can't is no reason to fail:
// what is missing is known to be missing.
func (w *Witness) put(g Generation, first int, frames []frame) {
	if w == nil || len(frames) == 0 {
		return
	}
	buf := make([]byte, 0, len(frames)*entryBytes)
	for i := range frames {
		f := &frames[i]
		at := len(buf)
		buf = binary.LittleEndian.AppendUint32(buf, f.page)
		buf = binary.LittleEndian.AppendUint32(buf, f.size)
		buf = binary.LittleEndian.AppendUint64(buf, f.sum)
		buf = binary.LittleEndian.AppendUint32(buf, entryCheck(g, first+i, buf[at:]))
	}
	_, _ = w.file.WriteAt(buf, entriesAt+int64(first)*entryBytes)
}

// entryCheck binds an entry to its place in a generation.
func entryCheck(g Generation, i int, entry []byte) uint32 {
	c := crc32.Update(uint32(i), castagnoli, g[:])
	return crc32.Update(c, castagnoli, entry)
}

// entries returns what is known of the frames of a generation, up to the first of which
// nothing is known.
func (w *Witness) entries(g Generation) (frames []frame, err error) {
	buf := make([]byte, 4096*entryBytes)
	for {
		n, err := w.file.ReadAt(buf, entriesAt+int64(len(frames))*entryBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the witness of the log: %w", err)
		}
		for e := buf[:n]; len(e) >= entryBytes; e = e[entryBytes:] {
			if binary.LittleEndian.Uint32(e[16:]) != entryCheck(g, len(frames), e[:16]) {
				return frames, nil
			}
			frames = append(frames, frame{
				page: binary.LittleEndian.Uint32(e), size: binary.LittleEndian.Uint32(e[4:]), sum: binary.LittleEndian.Uint64(e[8:]),
			})
		}
		if n < len(buf) {
			return frames, nil
		}
	}
}

// recall returns what is known of the log that was there when the witness was opened. A generation is noted
// before SQLite writes its header, so that a host that was killed in between has left the log of the one before.
func (w *Witness) recall() (Generation, []frame, error) {
	frames, err := w.entries(w.found.generation)
	if err != nil || len(frames) > 0 {
		return w.found.generation, frames, err
	}
	if frames, err = w.entries(w.found.previous); err != nil || len(frames) > 0 {
		return w.found.previous, frames, err
	}
	return w.found.generation, nil, nil
}

// begin notes that the log is restarted. Only the witness can show that it is this database's log, so
// it must know after a loss of power, too.
func (w *Witness) begin(g Generation) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.generation != g {
		w.last.previous, w.last.generation, w.last.settled = w.last.generation, g, false
	}
	err := w.writeLocked()
	if err == nil {
		err = w.file.Sync()
	}
	return err
}

// acknowledge writes a mark.
func (w *Witness) acknowledge(m Mark, synced bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.written == m && (!synced || w.last.synced == m) {
		return // nothing was written
	}
	w.last.written, w.last.served = m, true
	if synced {
		w.last.synced = m
	}
	_ = w.writeLocked() // the one before is still true
}

// Settle notes that everything is in the database, which looks so, and that the
// log is empty; closed is whether it stays so. It must be durable before the log goes. The
// first page is read from the database: what was noted of it last may not have come there
// before a loss of power.
func (w *Witness) Settle(db io.ReaderAt, stamp Stamp, closed bool) error {
	if w == nil {
		return nil
	}
	first, err := firstSum(db)
	if err != nil {
		return fmt.Errorf("read the first page: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.stamp, w.last.first, w.last.settled, w.last.closed = stamp, first, true, closed
	err = w.writeLocked()
	w.last.closed = false
	if err == nil {
		err = w.file.Sync()
	}
	return err
}

// Sync makes durable what is noted, before a part of the log is moved into the database: then
// a page there that has a seal is known, or older than the log.
func (w *Witness) Sync() {
	if w != nil {
		_ = w.file.Sync() // then less is known after a loss of power
	}
}

// SetStamp notes what the database looks like after jobhost has written to it.
func (w *Witness) SetStamp(s Stamp) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.stamp != s {
		w.last.stamp = s
		_ = w.writeLocked() // then others seem to have written, which costs a look
	}
}

// setFirst notes what the first page of the database is, to be written with the next mark.
func (w *Witness) setFirst(sum uint64) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.first = sum
}

// LastStamp returns what SetStamp was given last.
func (w *Witness) LastStamp() Stamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.stamp
}

func (w *Witness) writeLocked() error {
	w.turn++
	w.last.boot = w.boot
	_, err := w.file.WriteAt(formatSlot(w.turn, &w.last), int64(w.turn%2)*slotBytes)
	return err
}

func formatSlot(turn uint64, s *state) []byte {
	b := make([]byte, 0, slotBytes)
	b = append(b, witnessMagic...)
	b = binary.LittleEndian.AppendUint64(b, turn)
	b = append(b, s.boot[:]...)
	b = append(b, s.generation[:]...)
	b = append(b, s.previous[:]...)
	for _, m := range []Mark{s.written, s.synced} {
		b = append(b, m.Generation[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.Frames))
		b = append(b, m.Tail[:]...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(s.stamp.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.stamp.Changed))
	b = binary.LittleEndian.AppendUint64(b, s.first)
	flags := byte(0)
	if s.settled {
		flags |= 1
	}
	if s.closed {
		flags |= 2
	}
	if s.served {
		flags |= 4
	}
	if s.relaxed {
		flags |= 8
	}
	b = append(b, flags)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseSlot(b []byte) (turn uint64, s state, ok bool) {
	if len(b) < slotUsed || string(b[:len(witnessMagic)]) != witnessMagic ||
		crc32.Checksum(b[:slotUsed-4], castagnoli) != binary.LittleEndian.Uint32(b[slotUsed-4:]) {
		return 0, state{}, false
	}
	b = b[len(witnessMagic):]
	turn, b = binary.LittleEndian.Uint64(b), b[8:]
	s.boot, b = [16]byte(b), b[16:]
	s.generation, s.previous, b = Generation(b), Generation(b[8:]), b[16:]
	for _, m := range []*Mark{&s.written, &s.synced} {
		m.Generation, m.Frames = Generation(b), int(binary.LittleEndian.Uint64(b[8:]))
		m.Tail, b = [8]byte(b[16:]), b[markBytes:]
	}
	s.stamp = Stamp{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
	s.first, s.closed = binary.LittleEndian.Uint64(b[16:]), b[24]&2 != 0
	s.settled, s.served, s.relaxed = b[24]&1 != 0, b[24]&4 != 0, b[24]&8 != 0
	return turn, s, true
}
