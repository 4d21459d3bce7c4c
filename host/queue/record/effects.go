package record

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jobhost/jobhost"
)

// Effects are what an attempt asked the host to change. They come with the
// settlement that says that it succeeded and are applied with it, all or none.
type Effects struct {
	// KV changes keys of the job's worker, each key once.
	KV []KVChange
	// Quota bounds what all keys of the worker cost together: see [KVCost]; 0 =
	// no bound. Changes that make it less are always possible.
	Quota int64
	// Jobs are submitted; the Parent of each is the settled task's job.
	Jobs []*JobSpec
}

// KVKind is what a change does to a key; the zero value sets it.
type KVKind uint8

// The kinds of changes.
const (
	KVSet    KVKind = iota // the value becomes Value, until Expires
	KVAdd                  // the value, a whole number in decimal, 0 without one, gets Delta more; when it expires stays
	KVDelete               // the key goes; one that isn't there is fine
)

// KVChange changes a key.
type KVChange struct {
	Key     string
	Kind    KVKind
	Value   []byte
	Expires Millis // 0 = never
	Delta   int64
	// Checked makes the change depend on Version: unless that is the key's, 0 =
	// there is none, it is a conflict.
	Checked bool
	Version int64
}

// KVCost is what a key with its value counts against a quota, in bytes.
func KVCost(key string, value int) int64 { return int64(len(key)) + int64(value) + kvOverhead }

// kvOverhead is what a key costs besides its bytes, so that many small ones
// have a bound too. Extism counts the same for its vars.
const kvOverhead = 40

// KVEntry is a key with its value.
type KVEntry struct {
	Key   string
	Value []byte // not in lists
	Size  int    // of the value
	// Version is the number of the change that made the value what it is, among
	// those of all keys of the worker that set or add, from 1. It never comes
	// again, not even when a key is deleted and made anew.
	Version   int64
	Expires   Millis // 0 = never
	ChangedAt Millis
}

// Expired reports whether the entry's time is over: it counts as gone.
func (e *KVEntry) Expired(now Millis) bool { return e.Expires != 0 && e.Expires <= now }

// KVQuery selects keys of a worker, in the order of their bytes.
type KVQuery struct {
	Worker string
	Prefix string
	After  string // only keys after it; empty = from the first
	Limit  int
	Now    Millis // what has expired by then is left out
}

// Parent says which attempt submitted a job.
type Parent struct {
	ID    string // of the job
	Key   Key    // of the job, which is never given out again
	Task  int
	Depth int // of the submitted job: one more than its parent's; 0 without a parent
}

// Family is what a job may become the parent of.
type Family struct {
	Depth    int // of the job
	Children int // jobs that it submitted and that are still there
}

// EffectReader is the part of a store that reads what effects have made.
type EffectReader interface {
	// KV returns a key of a worker; not_found if there is none, or none any more.
	KV(ctx context.Context, worker, key string, now Millis) (KVEntry, error)
	// KVList lists up to Limit keys without their values.
	KVList(ctx context.Context, q KVQuery) ([]KVEntry, error)
	// KVSize returns what the keys of a worker that have not expired cost
	// together: see [KVCost].
	KVSize(ctx context.Context, worker string, now Millis) (int64, error)
	// Family returns a job's place among parents and children.
	Family(ctx context.Context, job Key) (Family, error)
}

// Refusals of effects. A settlement that gets one has changed nothing.

// ErrVersion is the answer to a checked change of a key that has changed since it was read.
func ErrVersion(key string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "kv",
		Message: fmt.Sprintf("the key %q was changed meanwhile", key),
	}
}

// ErrNoNumber is the answer to an addition to a value that is no whole number,
// or would leave the range of 64 bits.
func ErrNoNumber(key string) error {
	return &jobhost.Error{
		Code: jobhost.CodeConflict, Field: "kv",
		Message: fmt.Sprintf("the value of key %q is not a whole number that can be added to", key),
	}
}

// ErrQuota is the answer to changes that would put a worker over its quota.
func ErrQuota(worker string, quota int64) error {
	return &jobhost.Error{
		Code: jobhost.CodeExhausted, Field: "kv_quota",
		Message: fmt.Sprintf("the keys and values of worker %s would be over their quota of %d bytes", worker, quota),
		Hint:    "delete keys, let them expire, or raise the worker's kv_quota",
	}
}

// ErrChildren is the answer to jobs that would be too many for their parent.
func ErrChildren(parent string) error {
	return &jobhost.Error{
		Code: jobhost.CodeExhausted, Field: "submit",
		Message: fmt.Sprintf("job %s has submitted %d jobs, and may not submit more", parent, jobhost.MaxChildren),
	}
}

// ErrNoKey is the answer to a question for a key that isn't there.
func ErrNoKey(worker, key string) error {
	return &jobhost.Error{
		Code: jobhost.CodeNotFound, Field: "key",
		Message: fmt.Sprintf("worker %s has no key %q", worker, key),
	}
}

// AddNumber adds to a value that is a whole number in decimal; nil counts as 0.
// ok is false when it is no number, or the sum leaves the range of 64 bits.
func AddNumber(value []byte, delta int64) (sum int64, ok bool) {
	if value != nil {
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return 0, false
		}
		sum = n
	}
	total := sum + delta
	return total, (total > sum) == (delta > 0)
}
