package object

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/state/payload"
)

// A database whose folder was copied by other means than a restore has the same
// origin twice, and each host would remove what only the other one refers to. So
// a host removes objects of an origin from a store only while a mark there says
// that it is their owner, with a number that the owner raises again and again.
//
// Another owner is alive if its number rises, whatever the clocks say. A host that has ended leaves a mark that stands still; the next one on
// the same database, which its lock keeps the only one, takes that over at once.
// Any other host that sets a mark must find it again at its next look before it
// removes anything: two copies may find no mark, or a dead host's, at the same moment,
// and the mark of one of them is the last. What a look has found is good for less time
// than passes between setting a mark and finding it, so the one whose mark was replaced
// has noticed by then.
const (
	ownerEvery = 30 * time.Second   // between two looks
	ownerFresh = ownerEvery * 3 / 4 // for so long from its begin a look is good, and from its end one that gave nothing
	ownerLeave = 2 * time.Second    // for saying that the host ends
	ownerDead  = 4                  // looks at a mark that stands still, until its host is taken for dead
)

// ownerMark is what a mark says.
type ownerMark struct {
	Host string `json:"host"` // random, of one life of a host
	Beat int64  `json:"beat"`
	// Place is where its database is: no two hosts that live have one.
	Place string `json:"place"`
	// Ended: the host was stopped, and removes nothing any more.
	Ended bool `json:"ended,omitempty"`
	// For people, who look for the other host.
	Machine string    `json:"machine"`
	At      time.Time `json:"at"`
}

// ownerships are those of a host, of the objects of its origins in all stores. Only
// the janitor's goroutine has them.
type ownerships struct {
	cfg  *Config
	host string // in marks
	beat int64
	at   map[owned]*ownership

	begun bool // the host is an owner that wasn't before: what has waited can be removed
}

// owned are the objects of an origin in a store.
type owned struct {
	store  string
	origin payload.Origin
}

func (o owned) mark() string { return "owner-" + o.origin.String() }

// ownership is what is known of who owns them.
type ownership struct {
	mine      bool
	set       bool // the last look has set the host's mark
	looked    time.Time
	seen      ownerMark // the last of another host
	still     int       // looks at which it was the same
	contested bool      // another host lives
}

// errNotOwner: another host owns the objects, or may.
var errNotOwner = errors.New("another host may own the objects")

func newOwnerships(cfg *Config) *ownerships {
	return &ownerships{cfg: cfg, host: rand.Text(), at: map[owned]*ownership{}}
}

// mayRemove reports whether the host may remove objects now. A mark that was not
// looked at for a while is looked at first: the host may have slept.
func (o *ownerships) mayRemove(ctx context.Context, on owned) (bool, error) {
	if o.cfg.Place == "" {
		return true, nil // a database in memory can't be copied
	}
	k := o.at[on]
	if k == nil {
		k = &ownership{}
		o.at[on] = k
	}
	if !k.looked.IsZero() && time.Since(k.looked) < ownerFresh {
		return k.mine, nil
	}
	err := o.look(ctx, on, k)
	if errors.Is(err, payload.ErrNoMarks) {
		return true, nil
	}
	return k.mine && err == nil && time.Since(k.looked) < ownerFresh, err
}

// look reads a mark, and sets it anew unless it is of another host that may be alive.
func (o *ownerships) look(ctx context.Context, on owned, k *ownership) error {
	began := time.Now()
	text, err := o.cfg.Set.Mark(ctx, on.store, on.mark())
	if err != nil && !errors.Is(err, payload.ErrNotFound) {
		return err
	}
	var there ownerMark
	known := err == nil && json.Unmarshal(text, &there) == nil && !there.Ended // a power loss may have left half of one
	own := known && (there.Host == o.host || there.Place == o.cfg.Place)
	if known && !own && !k.isDead(there) {
		o.yield(on, k, there)
		return nil
	}
	if err := o.set(ctx, on, false); err != nil {
		return err
	}
	o.begun = o.begun || own && !k.mine
	k.mine, k.set, k.looked, k.still = own, true, time.Now(), 0
	if k.mine {
		k.looked = began
		o.contest(on, k, false)
	}
	return nil
}

// set sets a mark anew.
func (o *ownerships) set(ctx context.Context, on owned, ended bool) error {
	o.beat++
	machine, _ := os.Hostname() // for people only
	text, err := json.Marshal(ownerMark{o.host, o.beat, o.cfg.Place, ended, machine, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return fmt.Errorf("mark payloads: %w", err)
	}
	return o.cfg.Set.SetMark(ctx, on.store, on.mark(), text)
}

// end lets others have what the host owns, or was about to, as far as it can say so within a
// moment. Otherwise they wait until its marks have stood still for a while.
func (o *ownerships) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerLeave)
	defer cancel()
	for on, k := range o.at {
		if k.set && ctx.Err() == nil {
			_ = o.set(ctx, on, true)
		}
	}
}

// isDead reports whether the mark of another host has stood still for long enough.
func (k *ownership) isDead(there ownerMark) bool {
	if there.Host != k.seen.Host || there.Beat != k.seen.Beat {
		return false
	}
	k.still++
	return k.still >= ownerDead
}

// yield leaves the objects to another host, as long as that lives.
func (o *ownerships) yield(on owned, k *ownership, there ownerMark) {
	alive := there.Host == k.seen.Host && there.Beat != k.seen.Beat
	if there.Host != k.seen.Host || there.Beat != k.seen.Beat {
		k.still = 0
	}
	k.mine, k.set, k.looked, k.seen = false, false, time.Now(), there
	if !alive {
		return
	}
	if !k.contested {
		o.cfg.Logger.Error("another host is alive that has the same payloads: none of them is removed here",
			logkey.Payloads, on.store, logkey.Remote, there.Machine, logkey.Origin, on.origin.String(), logkey.Hint,
			"the folder of the store was copied: stop the host that is not to be, or make it from a backup by jobhost restore, without --take-over")
	}
	o.contest(on, k, true)
}

// contest tells of a contest that has begun or ended.
func (o *ownerships) contest(on owned, k *ownership, contested bool) {
	if k.contested && !contested {
		o.cfg.Logger.Info("the other host that had the same payloads is gone: they are removed here again", logkey.Payloads, on.store)
	}
	k.contested = contested
	for other, k := range o.at {
		contested = contested || other.store == on.store && k.contested
	}
	o.cfg.Contested(on.store, contested)
}

// renew looks at all marks. A store that is away is reported by what needs it.
func (k *Keeper) renew(ctx context.Context) {
	for _, store := range k.cfg.Set.Stores() {
		for _, origin := range k.own {
			_, _ = k.owners.mayRemove(ctx, owned{store, origin})
		}
	}
}

// removableNow returns those of the objects of a store that may be removed now.
func (k *Keeper) removableNow(ctx context.Context, store string, refs []payload.Ref) (free []payload.Ref, err error) {
	for _, ref := range refs {
		origin, _ := payload.OriginOf(ref.Key)
		may, fault := k.owners.mayRemove(ctx, owned{store, origin})
		switch {
		case may, errors.Is(fault, payload.ErrNoStore):
			free = append(free, ref)
		case fault != nil:
			return nil, fmt.Errorf("tell who owns payloads: %w", fault)
		default:
			err = errNotOwner
		}
	}
	return free, err
}
