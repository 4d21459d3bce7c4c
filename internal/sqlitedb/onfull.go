package sqlitedb

// OnFull says what becomes of a change while the disk is full.
type OnFull uint8

const (
	// Refused changes are answered at once; they bring something new.
	Refused OnFull = iota
	// Tried changes are made if there is room for them, and fail otherwise: those
	// that remove something, for instance. They may use the reserve.
	Tried
	// Kept changes wait until there is room, before all others: their caller can't
	// undo what they record. They may use the reserve. What writes them must
	// bound their number: see [DB.Flowing].
	Kept
)

// Spacious is a [Change] that says what becomes of it while the disk is full.
// Others are Refused.
type Spacious interface {
	Change
	OnFull() OnFull
}

func onFull(c Change) OnFull {
	if s, ok := c.(Spacious); ok {
		return s.OnFull()
	}
	return Refused
}

// Full returns why new things are refused, an error with code unavailable; nil =
// there is room on the disk.
func (db *DB) Full() error {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return db.writer.short.err
}

// Flowing returns a channel that is closed as soon as no change waits for room on
// the disk. Who brings Kept changes waits for it before bringing more.
func (db *DB) Flowing() <-chan struct{} { return *db.writer.short.flowing.Load() }

// GiveUp lets changes fail that wait for room, now and from now on: the process
// is about to end.
func (db *DB) GiveUp() {
	w := db.writer
	w.mu.Lock()
	w.short.giveUp = true
	w.mu.Unlock()
	w.work.Signal()
}
