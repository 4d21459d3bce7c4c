//go:build !wasip1

package jobhost

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// fakeKey is a key of the in-memory host.
type fakeKey struct {
	value   string
	version int64
	gone    bool
}

// newKeys returns keys at version 1.
func newKeys(values map[string]string) map[string]fakeKey {
	keys := map[string]fakeKey{}
	for name, value := range values {
		keys[name] = fakeKey{value: value, version: 1}
	}
	return keys
}

// fakeSubmit is a job that was submitted, or a request that was deferred.
type fakeSubmit struct {
	text     string
	id       string
	now      bool
	deferred *Deferred
}

// settle applies the effects of the attempt, if it succeeded.
func (h *fake) settle() {
	ok := h.result.Err == nil
	if len(h.keys) > 0 {
		h.result.Keys = map[string]string{}
	}
	if !ok {
		maps.Copy(h.result.Keys, h.at.Keys)
	}
	for name, k := range h.keys {
		if ok && !k.gone {
			h.result.Keys[name] = k.value
		}
	}
	for _, s := range h.asked {
		switch {
		case !ok && !s.now:
		case s.deferred != nil:
			h.result.Deferred = append(h.result.Deferred, *s.deferred)
		default:
			h.result.Submitted = append(h.result.Submitted, s.text)
		}
	}
}

// key returns a key, and whether it is valid.
func (h *fake) key(name string) (fakeKey, Errno) {
	if name == "" || len(name) > 512 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return fakeKey{}, ErrInvalid
	}
	k, there := h.keys[name]
	if !there || k.gone {
		return k, ErrNotFound
	}
	return k, 0
}

// put changes a key. Its version stays, as the attempt's own changes don't affect it.
func (h *fake) put(name, value string) Errno {
	k, e := h.key(name)
	switch {
	case e == ErrInvalid:
		return ErrInvalid
	case len(value) > 1<<20:
		return ErrLimit
	}
	h.keys[name] = fakeKey{value: value, version: k.version}
	return 0
}

func (h *fake) KVGet(key string) ([]byte, Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, e := h.key(key)
	return []byte(k.value), e
}

func (h *fake) KVVersion(key string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, e := h.key(key)
	if e == ErrInvalid {
		return int64(e)
	}
	return k.version
}

func (h *fake) KVSet(key string, value []byte, ttl int64) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ttl < 0 {
		return ErrInvalid
	}
	return h.put(key, string(value))
}

func (h *fake) KVDelete(key string) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, e := h.key(key)
	if e == ErrInvalid {
		return e
	}
	h.keys[key] = fakeKey{version: k.version, gone: true}
	return 0
}

func (h *fake) KVAdd(key string, delta int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, e := h.key(key)
	if e == ErrInvalid {
		return math.MinInt64 - int64(e)
	}
	n := int64(0)
	if e == 0 {
		var err error
		if n, err = strconv.ParseInt(k.value, 10, 64); err != nil {
			return math.MinInt64 - int64(ErrInvalid)
		}
	}
	if e := h.put(key, strconv.FormatInt(n+delta, 10)); e != 0 {
		return math.MinInt64 - int64(e)
	}
	return n + delta
}

func (h *fake) KVCompareAndSet(key string, version int64, value []byte) Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch k, e := h.key(key); {
	case e == ErrInvalid:
		return e
	case k.version != version:
		return ErrConflict
	}
	return h.put(key, string(value))
}

func (h *fake) Submit(text []byte, when int32) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	head, _, _ := strings.Cut(string(text), "\n\n")
	id, worker := "", ""
	for line := range strings.SplitSeq(head, "\n") {
		if name, value, _ := strings.Cut(line, ": "); name == "id" {
			id = value
		} else if name == "worker" {
			worker = value
		}
	}
	if !slices.Contains(h.at.MaySubmit, worker) {
		return int32(ErrDenied)
	}
	n := len(h.asked) + 1
	if id == "" {
		id = "child-" + strconv.Itoa(n)
	}
	h.asked = append(h.asked, fakeSubmit{text: string(text), id: id, now: when == 1})
	return int32(n)
}

// child returns the id of a submitted job.
func (h *fake) child(number string) (string, Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(h.asked) {
		return "", ErrNotFound
	}
	return h.asked[n-1].id, 0
}
