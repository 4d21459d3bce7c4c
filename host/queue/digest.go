package queue

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/state/payload"
)

// digestsOf identify what the caller asked for, apart from the id; ref is for a payload
// that is elsewhere. before is the digest as it was once: the payload followed the options
// there, so that one which began with an option could be taken for it.
func digestsOf(spec *jobhost.Spec, ref *payload.Ref) (now, before [16]byte) {
	whole := digestBefore(spec, ref)
	size := int64(len(spec.Payload))
	if ref != nil {
		size = ref.Size
	}
	var b [len(digestDomain) + 8 + len(whole)]byte
	copy(b[:], digestDomain)
	binary.LittleEndian.PutUint64(b[len(digestDomain):], uint64(size))
	copy(b[len(digestDomain)+8:], whole[:])
	sum := sha256.Sum256(b[:])
	return [16]byte(sum[:]), [16]byte(whole[:])
}

// digestDomain keeps the digests of one version apart from those of others.
const digestDomain = "jobhost job 2\n"

func digestBefore(spec *jobhost.Spec, ref *payload.Ref) (whole [sha256.Size]byte) {
	h := sha256.New()
	var buf [8]byte
	number := func(n int64) {
		binary.LittleEndian.PutUint64(buf[:], uint64(n))
		h.Write(buf[:])
	}
	text := func(s string) {
		number(int64(len(s)))
		h.Write([]byte(s))
	}
	text(spec.Worker)
	text(spec.ContentType)
	text(spec.Entry)
	number(int64(spec.Priority.Level()))
	number(int64(max(spec.Tasks, 1)))
	number(int64(spec.MaxAttempts))
	number(int64(spec.Timeout))
	number(int64(spec.Delay))
	number(int64(record.MillisOf(spec.RunAt)))
	number(int64(len(spec.Labels)))
	for _, k := range names(spec.Labels) {
		text(k)
		text(spec.Labels[k])
	}
	// What is left out leaves the digest as it was before there was such an option.
	for _, option := range []struct{ name, value string }{
		{"concurrency_key", spec.ConcurrencyKey}, {"unique_key", spec.UniqueKey}, {"callback", spec.Callback.Worker}, {"callback_url", spec.Callback.URL},
	} {
		if option.value != "" {
			text(option.name)
			text(option.value)
		}
	}
	for _, option := range []struct {
		name  string
		value time.Duration
	}{{"deadline", spec.Deadline}, {"unique_for", spec.UniqueFor}, {"retention", spec.Retention}} {
		if option.value != 0 {
			text(option.name)
			number(int64(option.value))
		}
	}
	var sum [sha256.Size]byte
	switch {
	case ref != nil && ref.Size > wholeDigest:
		text("payload sha256")
		h.Write(ref.Digest[:])
	case len(spec.Payload) > wholeDigest:
		text("payload sha256")
		sum = sha256.Sum256(spec.Payload)
		h.Write(sum[:])
	default:
		h.Write(spec.Payload)
	}
	return [sha256.Size]byte(h.Sum(sum[:0]))
}

// names returns the names of labels in order. Most jobs have none, and then it
// allocates nothing.
func names(labels map[string]string) []string {
	if len(labels) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(labels))
}

// wholeDigest is up to which size a payload's bytes take part in the digest of
// its job themselves; of larger ones it is their digest. It is no setting: the
// same content must have the same digest wherever it is kept.
const wholeDigest = 64 << 10
