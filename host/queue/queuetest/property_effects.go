package queuetest

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// The workers and keys of the property test: few, so that changes meet.
var (
	someWorkers = []string{"w", "x"}
	someKeys    = []string{"a", "b", "b\u00e9", "c"}
)

// clearKeys removes all keys, and tells the model where the versions stand.
func clearKeys(t *testing.T, rt *rapid.T, s record.Store, m *model) {
	for _, worker := range someWorkers {
		changes := []record.KVChange{{Key: "probe"}}
		for _, key := range someKeys {
			changes = append(changes, record.KVChange{Key: key, Kind: record.KVDelete})
		}
		if _, err := commit(s, &record.ChangeKV{Worker: worker, Changes: changes}); err != nil {
			rt.Fatalf("clear keys: %v", err)
		}
		e, err := s.KV(t.Context(), worker, "probe", 0)
		if err != nil {
			rt.Fatalf("clear keys: %v", err)
		}
		m.keys[worker] = &modelKeys{version: e.Version}
		remove := []record.KVChange{{Key: "probe", Kind: record.KVDelete}}
		if _, err := commit(s, &record.ChangeKV{Worker: worker, Changes: remove}); err != nil {
			rt.Fatalf("clear keys: %v", err)
		}
	}
}

// genParent draws the parent of a job, mostly none.
func genParent(t *rapid.T) *record.Parent {
	if rapid.IntRange(0, 3).Draw(t, "child") > 0 {
		return nil
	}
	return &record.Parent{
		ID: "a", Key: record.Key(rapid.IntRange(1, 2).Draw(t, "parent")), Task: 1,
		Depth: rapid.IntRange(1, 3).Draw(t, "depth"),
	}
}

// genChanges draws changes, each of another key, some of which depend on
// versions that may be the right ones.
func genChanges(m *model, worker string, now record.Millis) *rapid.Generator[[]record.KVChange] {
	change := rapid.Custom(func(t *rapid.T) record.KVChange {
		c := record.KVChange{
			Key:     rapid.SampledFrom(someKeys).Draw(t, "key"),
			Kind:    rapid.SampledFrom([]record.KVKind{record.KVSet, record.KVAdd, record.KVDelete}).Draw(t, "kind"),
			Checked: rapid.IntRange(0, 3).Draw(t, "checked") == 0,
		}
		switch c.Kind {
		case record.KVAdd:
			c.Delta = rapid.SampledFrom([]int64{-1, 0, 1, 41, 1 << 62, -1 << 63}).Draw(t, "delta")
		case record.KVSet:
			c.Value = []byte(rapid.SampledFrom([]string{"", "7", "-3", "no number", "a value of some length"}).Draw(t, "value"))
			if ttl := rapid.IntRange(0, 3).Draw(t, "ttl"); ttl > 0 {
				c.Expires = now + record.Millis(ttl)
			}
		}
		if c.Checked && rapid.Bool().Draw(t, "right version") {
			c.Version = m.live(worker, now)[c.Key].Version
		} else if c.Checked {
			c.Version = int64(rapid.IntRange(0, 3).Draw(t, "version"))
		}
		return c
	})
	return rapid.SliceOfNDistinct(change, 0, 4, func(c record.KVChange) string { return c.Key })
}

func genQuota(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{0, 0, 0, 60, 100, 150}).Draw(t, "quota")
}

func genChangeKV(m *model, now record.Millis) *rapid.Generator[record.Op] {
	return rapid.Custom(func(t *rapid.T) record.Op {
		worker := rapid.SampledFrom(someWorkers).Draw(t, "worker")
		return &record.ChangeKV{
			Worker: worker, At: now, Quota: genQuota(t), Changes: genChanges(m, worker, now).Draw(t, "changes"),
		}
	})
}

func genEffects(m *model, now record.Millis) *rapid.Generator[*record.Effects] {
	return rapid.Custom(func(t *rapid.T) *record.Effects {
		e := &record.Effects{KV: genChanges(m, "w", now).Draw(t, "keys"), Quota: genQuota(t)}
		for range rapid.IntRange(0, 3).Draw(t, "jobs") {
			id := rapid.SampledFrom([]string{"d", "e", "child-1", "child-2"}).Draw(t, "id")
			e.Jobs = append(e.Jobs, spec(id, rapid.SampledFrom(someWorkers).Draw(t, "worker"), func(s *record.JobSpec) {
				s.Tasks = rapid.IntRange(1, 2).Draw(t, "tasks")
				s.Digest[0] = byte(rapid.IntRange(0, 1).Draw(t, "digest"))
				s.Labels = map[string]string{"of": "a"}
				s.Parent = &record.Parent{ID: "a", Key: 1, Depth: 1}
			}))
		}
		return e
	})
}

// checkEffects asks the store and the model about keys and families. at must not be before the last change: the model
// forgets keys that have expired by then.
func checkEffects(t *testing.T, rt *rapid.T, s record.Store, m *model, at record.Millis) {
	ctx := t.Context()
	for _, worker := range append(someWorkers, "y") {
		for now := epoch; now < epoch+12; now += 3 {
			q := record.KVQuery{Worker: worker, Now: max(now, at), Limit: rapid.IntRange(0, 4).Draw(rt, "limit")}
			q.Prefix = rapid.SampledFrom([]string{"", "", "b", "zz"}).Draw(rt, "prefix")
			q.After = rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "after")
			list, err := s.KVList(ctx, q)
			if err != nil {
				rt.Fatalf("list keys: %v", err)
			}
			same(rt, "lists of keys", list, m.listKV(q))
		}
		live := m.live(worker, at)
		for _, key := range someKeys {
			got, err := s.KV(ctx, worker, key, at)
			want, there := live[key]
			if there != (err == nil) || !there && jobhost.CodeOf(err) != jobhost.CodeNotFound {
				rt.Fatalf("key %s of %s: %v", key, worker, err)
			}
			same(rt, "keys", got, want)
		}
		if size, err := s.KVSize(ctx, worker, at); err != nil || size != costOf(live) {
			rt.Fatalf("the keys of %s cost %d, %v; want %d", worker, size, err, costOf(live))
		}
	}
	for id, job := range m.jobs {
		got, err := s.Family(ctx, job.spec.Key)
		if err != nil {
			rt.Fatalf("family of %s: %v", id, err)
		}
		want, _ := m.family(job.spec.Key)
		same(rt, fmt.Sprint("families of ", id), got, want)
	}
}
