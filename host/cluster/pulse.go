package cluster

import (
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// pulse is what a standby knows of the leader's heartbeats by its own clock, which can't be set. By the database's alone
// a leader that lives would look dead when that clock is set forward, and one that is dead alive when it is set back; either
// may happen when another server takes over.
type pulse struct {
	epoch  int64
	beat   time.Time     // the last heartbeat that was seen
	since  time.Time     // when it was first seen
	aged   time.Duration // how old it was then at most
	looked time.Time     // when the leader was last looked at
}

// pulseSlack is how much later a look may be than it seems.
const pulseSlack = 500 * time.Millisecond

// feel makes the age of the last heartbeat what it can be. asked is when the database was asked for it.
func (p *pulse) feel(l *pgdb.Leader, asked time.Time) {
	switch {
	case l.Epoch != p.epoch:
		p.since, p.aged = asked, max(l.Renewed, 0)
	case !l.Beat.Equal(p.beat): // it has come since the last look
		p.since, p.aged = asked, asked.Sub(p.looked)
	}
	p.epoch, p.beat, p.looked = l.Epoch, l.Beat, asked
	seen := asked.Sub(p.since)
	l.Renewed = max(min(l.Renewed, p.aged+seen+pulseSlack), seen)
}
