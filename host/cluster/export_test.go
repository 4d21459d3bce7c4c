package cluster

import "context"

// Kill makes a member vanish like a killed process: nothing listens at its address any more, and its
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

// ListensAt is where others reach a member, whatever it says.
func (m *Member) ListensAt() string { return m.listener.Addr().String() }

// Beat renews the row of a member and takes in what the others say, which it otherwise does once a second.
func (m *Member) Beat(ctx context.Context) { _, _ = m.renew(ctx) }
