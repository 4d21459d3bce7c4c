package cluster

import "context"

// MaxStrangers is how many connections without a key may be open.
const MaxStrangers = maxStrangers

// Kill lets a member vanish as a process does that is killed: nothing listens at its address any more, and its
// connections are closed. The test cuts those to the database.
func (m *Member) Kill() {
	_ = m.peers.Close()
	m.FreeFolder()
}

// FreeFolder gives the folder of a member back, as the end of its process does.
func (m *Member) FreeFolder() {
	_ = m.folder.close()
	m.folder = nil
}

// KnowsDrained reports whether a member knows that a host was drained.
func (m *Member) KnowsDrained(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := find(m.hosts, name)
	return h != nil && h.Drained
}

// Beat renews the row of a member and takes in what the others say, which it otherwise does once a second.
func (m *Member) Beat(ctx context.Context) { _, _ = m.renew(ctx) }
