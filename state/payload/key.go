package payload

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// MaxKeyBytes is the longest key there is.
const MaxKeyBytes = 64

const (
	timeDigits = 12 // hex digits of a time in milliseconds, until the year 10889
	randomness = 16 // bytes, so that a key can't be guessed
)

// NewKey returns a key for an object that is made at a time. It can't be guessed.
func NewKey(at time.Time) string {
	var random [randomness]byte
	_, _ = rand.Read(random[:]) // it never fails: see its documentation
	return keyTime(at) + "-" + hex.EncodeToString(random[:])
}

// Origin is whose an object is: of the hosts with one database. It stands in the
// keys, so that objects of others are never taken for garbage.
type Origin [4]byte

// NewKey is [NewKey] for an object of an origin.
func (o Origin) NewKey(at time.Time) string {
	key := NewKey(at)
	return key[:timeDigits+1] + o.String() + key[timeDigits+1+2*len(o):]
}

// String returns the origin as it stands in keys.
func (o Origin) String() string { return hex.EncodeToString(o[:]) }

// ParseOrigin reads what [Origin.String] wrote.
func ParseOrigin(text string) (o Origin, ok bool) {
	if len(text) != hex.EncodedLen(len(o)) || !isHex(text) {
		return o, false
	}
	_, err := hex.Decode(o[:], []byte(text))
	return o, err == nil
}

// OriginOf returns whose an object is, by its key; false = it is no key. An
// object that was made without an origin has a random one.
func OriginOf(key string) (Origin, bool) {
	if _, ok := KeyTime(key); !ok {
		return Origin{}, false
	}
	return ParseOrigin(key[timeDigits+1:][:hex.EncodedLen(len(Origin{}))])
}

// keyTime is what keys begin with that are made at a time.
func keyTime(at time.Time) string {
	text := strconv.FormatInt(max(at.UnixMilli(), 0), 16)
	return strings.Repeat("0", max(timeDigits-len(text), 0)) + text
}

// KeyTime returns when a key was made; false = it is none of [NewKey].
func KeyTime(key string) (time.Time, bool) {
	if len(key) != timeDigits+1+2*randomness || key[timeDigits] != '-' || !isHex(key[:timeDigits]) || !isHex(key[timeDigits+1:]) {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(key[:timeDigits], 16, 64)
	return time.UnixMilli(ms), err == nil
}

// isHex reports whether s is in lower-case hex digits.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
