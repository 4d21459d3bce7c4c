package jobhost

import (
	"errors"
	"time"
)

// Bounds of keys and values that no configuration changes.
const (
	MaxKeyBytes   = 512
	MaxValueBytes = 1 << 20
)

// Key is what is known of one of the keys that a worker keeps values under.
type Key struct {
	Name string `json:"key"`
	Size int    `json:"size"` // of the value, in bytes
	// Version rises with each change of one of the worker's keys; it never comes again.
	Version   int64     `json:"version"`
	ChangedAt time.Time `json:"changed_at"`
	// ExpiresAt is when the key goes by itself; nil = never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// KeyFilter selects keys of a worker for a list.
type KeyFilter struct {
	Worker string
	// Prefix is what the keys begin with; empty = all.
	Prefix string
	// Cursor continues a list: the Next of the page before.
	Cursor string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// KeyPage is one page of a list of keys, in the order of their bytes.
type KeyPage struct {
	Keys []Key `json:"keys"`
	// Next is the cursor of the page that follows; empty on the last one.
	Next string `json:"next,omitempty"`
}

// Check reports everything that is wrong with the filter.
func (f *KeyFilter) Check() error {
	return errors.Join(
		CheckWorker(f.Worker),
		checkText("prefix", f.Prefix, MaxKeyBytes),
		checkText("cursor", f.Cursor, MaxKeyBytes),
		inRange("limit", f.Limit, 0, MaxPage),
	)
}

// CheckKey reports what is wrong with a key: it is 1 to [MaxKeyBytes] bytes of
// UTF-8 without control characters.
func CheckKey(key string) error {
	if key == "" {
		return invalid("key", "the key is empty")
	}
	return checkText("key", key, MaxKeyBytes)
}

// CheckValue reports what is wrong with a value and its time to live: the value
// has up to [MaxValueBytes], and the time is 0, for good, to [MaxDelay].
func CheckValue(value []byte, ttl time.Duration) error {
	var size error
	if len(value) > MaxValueBytes {
		size = &Error{
			Code: CodeTooLarge, Field: "value",
			Message: "the value is larger than 1 MiB",
			Hint:    "keep it elsewhere, and where it is under the key",
		}
	}
	return errors.Join(size, inRange("ttl", Duration(ttl), 0, Duration(MaxDelay)))
}
