package sealed

import "io"

// ReadWitness reads what the file of a witness says, to which nothing is written.
func ReadWitness(file io.ReaderAt, boot [16]byte) (*Witness, error) {
	return OpenWitness(readOnly{file}, boot)
}

// Remember adds to notes that have no witness what is known of the log of a database that another process has,
// by the witness of that one and by the log itself. Nothing is written to either.
func (n *Notes) Remember(witness io.ReaderAt, log io.Reader) error {
	w, err := ReadWitness(witness, [16]byte{})
	if err != nil {
		return err
	}
	_, frames, err := w.recall()
	if err != nil {
		return err
	}
	l, err := Scan(log, 0)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range append(frames, l.frames...) {
		n.appendLocked(f)
	}
	return nil
}

// readOnly is a file that is not written.
type readOnly struct{ io.ReaderAt }

// WriteAt implements [Storage].
func (readOnly) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// Sync implements [Storage].
func (readOnly) Sync() error { return nil }

// Close implements [Storage].
func (readOnly) Close() error { return nil }
