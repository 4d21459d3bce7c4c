package effect

import (
	"github.com/jobhost/jobhost/host/queue/record"
)

// keep replaces the state of a key by a changed one if that is within the
// limits; otherwise it changes nothing.
func (a *Attempt) keep(name []byte, k, next *key) error {
	keys, bytes := 0, len(next.value)-len(k.value)
	if k.change == unchanged {
		keys, bytes = 1, len(name)+len(next.value)
	}
	err := a.fits(keys, bytes)
	if err == nil {
		err = a.withinQuota(string(name), k, next)
	}
	if err != nil {
		if !k.read && k.change == unchanged {
			delete(a.keys, string(name))
		}
		return err
	}
	if k.change == unchanged && k.read {
		a.clean.keys--
		a.clean.bytes -= k.weight(string(name))
	}
	a.dirty.keys += keys
	a.dirty.bytes += bytes
	a.grown += next.cost(string(name)) - k.cost(string(name))
	*k = *next
	return nil
}

// longestNumber is the maximum length of a number in decimal.
const longestNumber = 20

// cost is the most that the changed key can cost the worker, ignoring what the
// key costs now.
func (k *key) cost(name string) int64 {
	switch k.change {
	case set:
		return record.KVCost(name, len(k.value))
	case add:
		return record.KVCost(name, longestNumber)
	}
	return 0
}

// withinQuota checks that the worker's keys would stay within their quota. This
// tells the guest in time; the store makes the final decision after the attempt
// has succeeded. Nothing is read while the changes would fit even if all keys
// were new.
func (a *Attempt) withinQuota(name string, k, next *key) error {
	more := next.cost(name) - k.cost(name)
	if a.cfg.Quota <= 0 || more <= 0 {
		return nil
	}
	if a.size < 0 {
		ctx, done := a.context()
		defer done()
		size, err := a.cfg.Queue.KeySize(ctx, a.cfg.Lease.Job.Worker)
		if err != nil {
			return err
		}
		a.size = size
	}
	if a.size+a.grown+more <= a.cfg.Quota {
		return nil
	}
	before, err := a.replaced(name)
	if err != nil {
		return err
	}
	if growth := a.grown + more - before; growth <= 0 || a.size+growth <= a.cfg.Quota {
		return nil
	}
	a.cfg.Hit(LimitQuota)
	return record.ErrQuota(a.cfg.Lease.Job.Worker, a.cfg.Quota)
}

// replaced returns the current cost of the keys that are changed, and of next,
// which will be.
func (a *Attempt) replaced(next string) (int64, error) {
	var names []string
	for name, k := range a.keys {
		if k.change != unchanged || name == next {
			names = append(names, name)
		}
	}
	var cost int64
	for _, name := range names {
		k, err := a.read([]byte(name))
		if err != nil {
			return 0, err
		}
		if k.was.Version != 0 {
			cost += record.KVCost(name, len(k.was.Value))
		}
	}
	return cost, nil
}
