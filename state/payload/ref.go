package payload

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Ref says where an object is and what its content was: its size and digest are
// those of the content, whatever compression and encryption made of it.
type Ref struct {
	Store  string // name of the store in its set
	Key    string // of the object
	Size   int64  // of the content, in bytes
	Digest [32]byte
	Zstd   bool   // the content is compressed
	Sealed string // id of the key that sealed it; empty = it is not encrypted
}

// Longest names, in bytes.
const (
	MaxNameBytes = 32  // of a store, and of a key's id
	maxRefBytes  = 256 // of the text of a reference
	sep          = ":" // stands in none of the parts
	endOfName    = ";" // follows sep in the order of bytes
)

// Name returns what tells the object from all others: store and key.
func (r Ref) Name() string { return Name(r.Store, r.Key) }

// Name is the name of an object: what the text of every reference to it begins
// with, up to and with a colon.
func Name(store, key string) string { return store + sep + key + sep }

// NameEnd returns the text that follows all references with a name, and no
// other ones, in the order of their bytes.
func NameEnd(name string) string { return strings.TrimSuffix(name, sep) + endOfName }

// NameOf returns the name in the text of a reference, "" if it has none.
func NameOf(ref string) string {
	store, rest, _ := strings.Cut(ref, sep)
	key, _, ok := strings.Cut(rest, sep)
	if !ok {
		return ""
	}
	return Name(store, key)
}

// String returns the reference as text, which [ParseRef] reads:
//
//	store:key:size:encoding:key id:digest
//
// The encoding is "z" for zstd and "-" for none.
func (r Ref) String() string {
	encoding := "-"
	if r.Zstd {
		encoding = "z"
	}
	return Name(r.Store, r.Key) + strings.Join([]string{
		strconv.FormatInt(r.Size, 10), encoding, r.Sealed, hex.EncodeToString(r.Digest[:]),
	}, sep)
}

// ParseRef reads what [Ref.String] wrote, and nothing else.
func ParseRef(text string) (Ref, error) {
	fault := func(what string) (Ref, error) {
		return Ref{}, fmt.Errorf("read reference %.64q: %s", text, what)
	}
	parts := strings.Split(text, sep)
	if len(parts) != 6 || len(text) > maxRefBytes {
		return fault("it has not the parts of one")
	}
	r := Ref{Store: parts[0], Key: parts[1], Zstd: parts[3] == "z", Sealed: parts[4]}
	if err := CheckName(r.Store); err != nil {
		return fault("the name of its store is none")
	}
	if _, ok := KeyTime(r.Key); !ok {
		return fault("its key is none")
	}
	size, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != parts[2] {
		return fault("its size is none")
	}
	r.Size = size
	if !r.Zstd && parts[3] != "-" {
		return fault("its encoding is unknown")
	}
	if r.Sealed != "" && CheckName(r.Sealed) != nil {
		return fault("the id of its key is none")
	}
	if len(parts[5]) != 2*len(r.Digest) || !isHex(parts[5]) {
		return fault("its digest is none")
	}
	if _, err := hex.Decode(r.Digest[:], []byte(parts[5])); err != nil {
		return fault("its digest is none")
	}
	return r, nil
}

// CheckName returns an error unless s may name a store or a key: 1 to 32 of a-z
// 0-9 _ -, beginning with a letter or digit.
func CheckName(s string) error {
	if s == "" || len(s) > MaxNameBytes || s[0] == '-' || s[0] == '_' ||
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return errors.New("a name is 1 to 32 of a-z 0-9 _ - and begins with a letter or digit")
	}
	return nil
}
