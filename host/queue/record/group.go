package record

import (
	"crypto/sha256"
	"encoding/binary"
)

// Group stands for tasks that are limited together: those with a concurrency
// key, those of a job with a limit of its own, those that a breaker holds; 0 =
// none of these. Stores keep it beside each task, so that claiming a million of
// them reads no texts. It is a part of a digest: two keys in one group would
// share its turns and its limit, and do no other harm.
//
// The lowest bit is set for concurrency keys, whose limit is the worker's. In
// other groups the next bits are the limit, so that it comes with every task
// and needs no place of its own.
type Group int64

const (
	limitShift = 1
	limitBits  = 15
	mostLimit  = 1<<limitBits - 1
	// ownGroup is set in all groups that are not of a concurrency key: none of them is 0.
	ownGroup = 1 << (limitShift + limitBits)
)

// GroupOf returns the group of a concurrency key.
func GroupOf(key string) Group {
	if key == "" {
		return 0
	}
	return Group(digestWord(key) | 1)
}

// Group returns the group of the job's tasks.
func (j *JobSpec) Group() Group {
	switch {
	case j.MaxParallel > 0 && j.MaxParallel < j.Tasks:
		return groupWithLimit("job "+j.ID, j.MaxParallel)
	case j.Breaker != nil:
		return groupWithLimit("breaker "+j.Breaker.Key, 0)
	}
	return GroupOf(j.ConcurrencyKey)
}

// groupWithLimit returns a group that lets so many of its tasks run; 0 = no limit.
func groupWithLimit(name string, limit int) Group {
	word := digestWord(name) &^ (ownGroup - 1)
	return Group(word | ownGroup | uint64(min(limit, mostLimit))<<limitShift)
}

func digestWord(text string) uint64 {
	digest := sha256.Sum256([]byte(text))
	return binary.LittleEndian.Uint64(digest[:])
}

// Limit returns how many tasks of the group may run; 0 = no limit.
func (id Group) Limit(perKey int) int {
	if id&1 != 0 {
		return perKey
	}
	return int(id>>limitShift) & mostLimit
}
