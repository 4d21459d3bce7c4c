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

// Key describes one of a worker's keys, without its value.
type Key struct {
	Name string `json:"key"`
	Size int    `json:"size"` // of the value, in bytes
	// Version rises with each change of any of the worker's keys; no version is used
	// twice.
	Version   int64     `json:"version"`
	ChangedAt time.Time `json:"changed_at"`
	// ExpiresAt is when the key expires; nil = never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// KeyFilter selects keys of a worker for a list.
type KeyFilter struct {
	Worker string
	// Prefix is what the keys must begin with; empty = all.
	Prefix string
	// Cursor continues a list: the Next of the previous page.
	Cursor string
	// Limit is the size of a page, up to [MaxPage]; 0 = 50.
	Limit int
}

// KeyPage is one page of a list of keys, in byte order.
type KeyPage struct {
	Keys []Key `json:"keys"`
	// Next is the cursor of the next page; empty on the last one.
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
// may have up to [MaxValueBytes], and the time must be between 0 (no expiry)
// and [MaxDelay].
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
