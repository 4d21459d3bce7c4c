package payloadtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/state/payload"
)

// unclosed keeps a set from closing a store that the test closes.
type unclosed struct{ payload.Store }

// Close does nothing.
func (unclosed) Close() error { return nil }

// newSet returns a set of one store.
func newSet(t testing.TB, s payload.Store, cfg payload.Config) *payload.Set {
	t.Helper()
	cfg.Stores = []payload.Named{{Name: "one", Store: unclosed{s}}}
	set, err := payload.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func key(id string, b byte) payload.Key {
	return payload.Key{ID: id, Secret: bytes.Repeat([]byte{b}, payload.SecretBytes)}
}

// configs are the ways to write objects.
func configs() []payload.Config {
	return []payload.Config{
		{},
		{Compress: true},
		{Keys: []payload.Key{key("k1", 1)}},
		{Compress: true, Keys: []payload.Key{key("k1", 1), key("k2", 2)}},
	}
}

func nameOf(cfg payload.Config) string {
	return fmt.Sprintf("compress=%v keys=%d", cfg.Compress, len(cfg.Keys))
}

// read returns the content behind a reference.
func read(t testing.TB, set *payload.Set, ref payload.Ref) ([]byte, error) {
	r, err := set.Open(t.Context(), ref)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// testSets writes content in every way and reads it with a set that has all keys.
func testSets(t *testing.T, h Harness) {
	s := h.Open(t)
	all := newSet(t, s, payload.Config{Keys: []payload.Key{key("k2", 2), key("k1", 1)}})
	for _, cfg := range configs() {
		t.Run(nameOf(cfg), func(t *testing.T) {
			set := newSet(t, s, cfg)
			for _, data := range [][]byte{nil, []byte("x"), content(65_536), content(2<<20 + 3), bytes.Repeat([]byte("again "), 1<<18)} {
				ref, err := set.Put(t.Context(), bytes.NewReader(data), 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				if ref.Size != int64(len(data)) || ref.Digest != sha256.Sum256(data) {
					t.Errorf("the reference is of %d bytes and %x", ref.Size, ref.Digest)
				}
				if ref, err = payload.ParseRef(ref.String()); err != nil {
					t.Fatal(err)
				}
				got, err := read(t, all, ref)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("got %d bytes, %v; want %d", len(got), err, len(data))
				}
				wantHidden(t, s, ref, data)
			}
		})
	}
}

// wantHidden fails the test if what is sealed can be read in the store.
func wantHidden(t *testing.T, s payload.Store, ref payload.Ref, data []byte) {
	t.Helper()
	if ref.Sealed == "" || len(data) < 100 {
		return
	}
	kept, err := get(t.Context(), s, ref.Key)
	if err != nil || bytes.Contains(kept, data[:100]) {
		t.Errorf("the content of a sealed object is in the store (%v)", err)
	}
}

// testDamage changes a byte in the store: it must not be taken for the content.
func testDamage(t *testing.T, h Harness) {
	s := h.Open(t)
	for _, cfg := range configs() {
		t.Run(nameOf(cfg), func(t *testing.T) {
			set := newSet(t, s, cfg)
			ref, err := set.Put(t.Context(), bytes.NewReader(content(200_000)), 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			h.Damage(t, s, ref.Key)
			if got, err := read(t, set, ref); !errors.Is(err, payload.ErrCorrupt) || !payload.Permanent(err) {
				t.Errorf("got %d bytes, %v; want an error of damage", len(got), err)
			}
		})
	}
}

func testKeys(t *testing.T, h Harness) {
	s := h.Open(t)
	first := newSet(t, s, payload.Config{Keys: []payload.Key{key("k1", 1)}})
	rotated := newSet(t, s, payload.Config{Keys: []payload.Key{key("k1", 1), key("k2", 2)}})
	put := func(set *payload.Set) payload.Ref {
		ref, err := set.Put(t.Context(), strings.NewReader("a secret"), 100)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	old, now := put(first), put(rotated)
	if old.Sealed != "k1" || now.Sealed != "k2" {
		t.Fatalf("sealed with %s and %s", old.Sealed, now.Sealed)
	}
	for _, ref := range []payload.Ref{old, now} {
		if got, err := read(t, rotated, ref); string(got) != "a secret" {
			t.Errorf("sealed with %s: %q, %v", ref.Sealed, got, err)
		}
	}
	if _, err := read(t, first, now); !errors.Is(err, payload.ErrNoKey) {
		t.Errorf("without the key: %v", err)
	}
	wrong := newSet(t, s, payload.Config{Keys: []payload.Key{key("k1", 3)}})
	if _, err := read(t, wrong, old); !errors.Is(err, payload.ErrCorrupt) {
		t.Errorf("with another key of that name: %v", err)
	}
	now.Store = "two"
	if _, err := read(t, rotated, now); !errors.Is(err, payload.ErrNoStore) {
		t.Errorf("of another store: %v", err)
	}
}

// testExchanged reads an object with the reference to another one.
func testExchanged(t *testing.T, h Harness) {
	s := h.Open(t)
	for _, cfg := range configs() {
		set := newSet(t, s, cfg)
		var refs [2]payload.Ref
		for i := range refs {
			var err error
			if refs[i], err = set.Put(t.Context(), strings.NewReader(strings.Repeat(fmt.Sprint(i), 100)), 100); err != nil {
				t.Fatal(err)
			}
		}
		refs[0].Key = refs[1].Key
		if _, err := read(t, set, refs[0]); !errors.Is(err, payload.ErrCorrupt) {
			t.Errorf("%s: got %v, want an error of damage", nameOf(cfg), err)
		}
		refs[1].Size--
		if _, err := read(t, set, refs[1]); !errors.Is(err, payload.ErrCorrupt) {
			t.Errorf("%s: with another size: got %v, want an error of damage", nameOf(cfg), err)
		}
	}
}

func testLimit(t *testing.T, h Harness) {
	s := h.Open(t)
	set := newSet(t, s, payload.Config{Compress: true})
	if _, err := set.Put(t.Context(), bytes.NewReader(make([]byte, 1<<20+1)), 1<<20); !errors.Is(err, payload.ErrTooLarge) {
		t.Errorf("got %v, want an error of the limit", err)
	}
	wantKeys(t, s)
	wantClean(t, h, s)
	if _, err := set.Put(t.Context(), bytes.NewReader(make([]byte, 1<<20)), 1<<20); err != nil {
		t.Error(err)
	}
}
