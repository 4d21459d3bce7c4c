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

// If the folder of a database was copied by other means than a restore, two databases have the same origin,
// and each host would remove objects that only the other one refers to. So a host removes objects of an
// origin from a store only while a mark there says that it is their owner, with a number that the owner keeps
// raising.
//
// Another owner is alive if its number rises, whatever the clocks say. A host that has ended leaves a mark
// that doesn't change; the next host on the same database, whose lock excludes others, takes it over at once.
// Any other host that sets a mark must find it again at its next look before it removes anything: two copies
// may find no mark, or a dead host's, at the same moment, and one of their marks is the last. The result of a
// look is valid for less time than passes between setting a mark and finding it, so the host whose mark was
// replaced has noticed by then.
const (
	ownerEvery = 30 * time.Second   // between two looks
	ownerFresh = ownerEvery * 3 / 4 // how long a look is valid: from its start, or from its end if it didn't make the host an owner
	ownerLeave = 2 * time.Second    // for recording that the host ends
	ownerDead  = 4                  // looks at an unchanged mark until its host is considered dead
)

// ownerMark is the content of a mark.
type ownerMark struct {
	Host string `json:"host"` // random, new for each start of a host
	Beat int64  `json:"beat"`
	// Place is the location of the host's database: unique among running hosts.
	Place string `json:"place"`
	// Ended: the host was stopped, and removes nothing any more.
	Ended bool `json:"ended,omitempty"`
	// For people looking for the other host.
	Machine string    `json:"machine"`
	At      time.Time `json:"at"`
}

// ownerships are a host's ownerships of the objects of its origins in all stores. Only the janitor's
// goroutine uses them.
type ownerships struct {
	cfg  *Config
	host string // of the marks
	beat int64
	at   map[owned]*ownership

	begun bool // the host has become an owner: objects that waited can be removed
}

// owned are the objects of an origin in a store.
type owned struct {
	store  string
	origin payload.Origin
}

func (o owned) mark() string { return "owner-" + o.origin.String() }

// ownership is what is known about the owner of such objects.
type ownership struct {
	mine      bool
	set       bool // the last look has set the host's mark
	looked    time.Time
	seen      ownerMark // the last mark of another host
	still     int       // looks at which it was unchanged
	contested bool      // another host is alive
}

// errNotOwner: another host owns the objects, or may own them.
var errNotOwner = errors.New("another host may own the objects")

func newOwnerships(cfg *Config) *ownerships {
	return &ownerships{cfg: cfg, host: rand.Text(), at: map[owned]*ownership{}}
}

// mayRemove reports whether the host may remove objects now. If the last look at the mark is too old, it
// looks first: the host may have been suspended.
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

// look reads a mark, and renews it unless it belongs to another host that may be alive.
func (o *ownerships) look(ctx context.Context, on owned, k *ownership) error {
	began := time.Now()
	text, err := o.cfg.Set.Mark(ctx, on.store, on.mark())
	if err != nil && !errors.Is(err, payload.ErrNotFound) {
		return err
	}
	var there ownerMark
	known := err == nil && json.Unmarshal(text, &there) == nil && !there.Ended // a power failure may have left a partial mark
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

// set writes the mark with a new number.
func (o *ownerships) set(ctx context.Context, on owned, ended bool) error {
	o.beat++
	machine, _ := os.Hostname() // for people only
	text, err := json.Marshal(ownerMark{o.host, o.beat, o.cfg.Place, ended, machine, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return fmt.Errorf("mark payloads: %w", err)
	}
	return o.cfg.Set.SetMark(ctx, on.store, on.mark(), text)
}

// end gives up what the host owns, or was about to own, as far as it can record that within a moment.
// Otherwise others wait until its marks have been unchanged for a while.
func (o *ownerships) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerLeave)
	defer cancel()
	for on, k := range o.at {
		if k.set && ctx.Err() == nil {
			_ = o.set(ctx, on, true)
		}
	}
}

// isDead reports whether the mark of another host has been unchanged for long enough.
func (k *ownership) isDead(there ownerMark) bool {
	if there.Host != k.seen.Host || there.Beat != k.seen.Beat {
		return false
	}
	k.still++
	return k.still >= ownerDead
}

// yield leaves the objects to another host while that host is alive.
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

// contest reports a contest that has begun or ended.
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

// renew looks at all marks. Unavailable stores are reported by the operations that need them.
func (k *Keeper) renew(ctx context.Context) {
	for _, store := range k.cfg.Set.Stores() {
		for _, origin := range k.own {
			_, _ = k.owners.mayRemove(ctx, owned{store, origin})
		}
	}
}

// removableNow returns the objects of a store that may be removed now.
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
