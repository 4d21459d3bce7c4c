package cluster

import "context"

// Kill lets a member vanish as a process does that is killed: nothing listens at its address any more, and its
// connections are closed. The test cuts those to the database.
func (m *Member) Kill() { _ = m.peers.Close() }

// ListensAt is where others reach a member, whatever it says.
func (m *Member) ListensAt() string { return m.listener.Addr().String() }

// Beat renews the row of a member and takes in what the others say, which it otherwise does once a second.
func (m *Member) Beat(ctx context.Context) { _, _ = m.renew(ctx) }
