package queuetest

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// modelKeys are the keys of a worker.
type modelKeys struct {
	version int64
	entries map[string]record.KVEntry
}

// effects makes the changes of an attempt, or none of them.
func (m *model) effects(worker string, op *record.Settle, got record.OpResult) (record.OpResult, error) {
	e, added := op.Effects, 0
	digests := map[string][16]byte{}
	for _, spec := range e.Jobs {
		if job := m.jobs[spec.ID]; job != nil {
			digests[spec.ID] = job.spec.Digest
		}
		digest, there := digests[spec.ID]
		switch {
		case there && digest != spec.Digest:
			return m.code(jobhost.CodeConflict), nil
		case !there:
			digests[spec.ID] = spec.Digest
			added++
		}
	}
	if len(e.Jobs) > 0 && !m.room(e.Jobs[0].Parent, added) {
		return m.code(jobhost.CodeExhausted), nil
	}
	if err := m.changeKV(worker, e.KV, op.EndedAt, e.Quota); err != nil {
		return record.OpResult{Err: err}, nil //nolint:nilerr // a refusal is an answer
	}
	var res record.OpResult
	for i, spec := range e.Jobs {
		key := m.next
		if i < len(got.Jobs) {
			key = got.Jobs[i].Key
		}
		sub, err := m.submit(spec, key)
		if err != nil {
			return res, err
		}
		res.Jobs = append(res.Jobs, record.Added{Key: sub.Key, Existing: sub.Existing})
	}
	return res, nil
}

// free is an answer with the keys that the model itself would give.
func (m *model) free(op record.Op) record.OpResult {
	got := record.OpResult{Key: m.next}
	settle, _ := op.(*record.Settle)
	if settle == nil || settle.Effects == nil {
		return got
	}
	next, given := m.next, map[string]bool{}
	for _, spec := range settle.Effects.Jobs {
		got.Jobs = append(got.Jobs, record.Added{Key: next})
		if m.jobs[spec.ID] == nil && !given[spec.ID] {
			next += record.Key(spec.Tasks)
			given[spec.ID] = true
		}
	}
	return got
}

// room reports whether a parent may have n children more.
func (m *model) room(p *record.Parent, n int) bool {
	return p == nil || n == 0 || m.children(p.ID, p.Key)+n <= jobhost.MaxChildren
}

func (m *model) children(id string, key record.Key) int {
	n := 0
	for _, job := range m.jobs {
		// A child comes after its parent, also where a test draws another one.
		if p := job.spec.Parent; p != nil && p.ID == id && p.Key == key && job.spec.Key > key {
			n++
		}
	}
	return n
}

// live returns the keys of a worker that have not expired.
func (m *model) live(worker string, at record.Millis) map[string]record.KVEntry {
	live := map[string]record.KVEntry{}
	if k := m.keys[worker]; k != nil {
		for key, e := range k.entries {
			if !e.Expired(at) {
				live[key] = e
			}
		}
	}
	return live
}

func costOf(entries map[string]record.KVEntry) (n int64) {
	for key, e := range entries {
		n += record.KVCost(key, len(e.Value))
	}
	return n
}

// changeKV changes keys, all or none.
func (m *model) changeKV(worker string, changes []record.KVChange, at record.Millis, quota int64) error {
	if len(changes) == 0 {
		return nil
	}
	before := m.live(worker, at)
	after := maps.Clone(before)
	version := int64(0)
	if k := m.keys[worker]; k != nil {
		version = k.version
	}
	for _, c := range changes {
		old, there := before[c.Key]
		if c.Checked && c.Version != old.Version {
			return record.ErrVersion(c.Key)
		}
		e := record.KVEntry{Key: c.Key, Value: bytes.Clone(c.Value), Expires: c.Expires, ChangedAt: at}
		switch c.Kind {
		case record.KVDelete:
			delete(after, c.Key)
			continue
		case record.KVAdd:
			if !there {
				old.Value = nil
			}
			sum, ok := record.AddNumber(old.Value, c.Delta)
			if !ok {
				return record.ErrNoNumber(c.Key)
			}
			e.Value, e.Expires = strconv.AppendInt(nil, sum, 10), old.Expires
		}
		version++
		e.Version, e.Size = version, len(e.Value)
		after[c.Key] = e
	}
	if cost := costOf(after); quota > 0 && cost > quota && cost > costOf(before) {
		return record.ErrQuota(worker, quota)
	}
	m.keys[worker] = &modelKeys{version: version, entries: after}
	return nil
}

// listKV is what the store should answer to a query.
func (m *model) listKV(q record.KVQuery) []record.KVEntry {
	live := m.live(q.Worker, q.Now)
	var out []record.KVEntry
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if len(out) < q.Limit && key > q.After && strings.HasPrefix(key, q.Prefix) {
			e := live[key]
			e.Value = nil
			out = append(out, e)
		}
	}
	return out
}

// family is what the store should tell of a job.
func (m *model) family(key record.Key) (record.Family, bool) {
	for _, job := range m.jobs {
		if job.spec.Key != key {
			continue
		}
		f := record.Family{Children: m.children(job.spec.ID, key)}
		if p := job.spec.Parent; p != nil {
			f.Depth = p.Depth
		}
		return f, true
	}
	return record.Family{}, false
}
