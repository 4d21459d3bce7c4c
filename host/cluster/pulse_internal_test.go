package cluster

import (
	"testing"
	"time"

	"github.com/jobhost/jobhost/internal/pgdb"
)

// TestPulse: whether a leader's heartbeat is too old follows from what a standby has seen, whatever becomes of the database's
// clock.
func TestPulse(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	begin := time.Now()
	beat := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	type look struct {
		at, beat float64 // by this host's clock, and the database's, in seconds
		epoch    int64
		age      float64 // by the database's clock
		expired  bool
	}
	for name, looks := range map[string][]look{
		"beats":                       {{0, 0, 1, 0.2, false}, {1, 1, 1, 0.2, false}, {9, 9, 1, 0.3, false}},
		"dead":                        {{0, 0, 1, 0.2, false}, {4, 0, 1, 4.2, false}, {4.9, 0, 1, 5.1, true}},
		"dead before this host began": {{0, -9, 1, 9, true}},
		"set forward, the same beat":  {{0, 0, 1, 0.2, false}, {0.5, 0, 1, 3600, false}, {1, 3601, 1, 0.1, false}, {6.5, 3601, 1, 5.6, true}},
		"set forward, another beat":   {{0, 0, 1, 0.2, false}, {0.5, 0.4, 1, 3600, false}, {1.5, 3601, 1, 0.1, false}},
		"set forward, and dead":       {{0, 0, 1, 0.2, false}, {0.5, 0.4, 1, 3600, false}, {5.6, 0.4, 1, 3605, true}},
		"set back, and dead":          {{0, 0, 1, 0.2, false}, {1, 0, 1, -3600, false}, {4.9, 0, 1, -3596, false}, {5.1, 0, 1, -3595, true}},
		"set back before":             {{0, 3600, 1, -3600, false}, {5.1, 3600, 1, -3595, true}},
		"another one":                 {{0, 0, 1, 0.2, false}, {4, 0, 1, 4.2, false}, {6, 5.5, 2, 0.5, false}, {7, 5.5, 2, 1.5, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p pulse
			for i, look := range looks {
				l := pgdb.Leader{Epoch: look.epoch, Beat: beat(look.beat), Renewed: time.Duration(look.age * float64(time.Second))}
				p.feel(&l, beat(look.at))
				if why := l.Vacant(lease); (why == "expired") != look.expired {
					t.Errorf("look %d: %q, a heartbeat %v old", i, why, l.Renewed)
				}
			}
		})
	}
}
