package payload_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state/payload"
	"github.com/jobhost/jobhost/state/payload/payloadtest"
)

func TestMemory(t *testing.T) {
	payloadtest.Run(t, payloadtest.Harness{
		InMemory: true,
		Open:     func(testing.TB) payload.Store { return payloadtest.NewMemory() },
		Damage: func(_ testing.TB, s payload.Store, key string) {
			s.(*payloadtest.Memory).Change(key, func(b []byte) []byte {
				b[len(b)/2] ^= 1
				return b
			})
		},
		Left: func(testing.TB, payload.Store) []string { return nil },
		Gone: func(testing.TB) payload.Store {
			m := payloadtest.NewMemory()
			m.Fail(errors.New("the server is gone"))
			return m
		},
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	store := payloadtest.NewMemory()
	secret := make([]byte, payload.SecretBytes)
	for _, c := range []struct {
		name string
		cfg  payload.Config
		want string
	}{
		{"no store", payload.Config{}, "no store"},
		{"no name", payload.Config{Stores: []payload.Named{{Store: store}}}, "a name is"},
		{"two of a name", payload.Config{Stores: []payload.Named{{Name: "a", Store: store}, {Name: "a", Store: store}}}, "twice"},
		{"a short key", payload.Config{Stores: []payload.Named{{Name: "a", Store: store}}, Keys: []payload.Key{{ID: "k", Secret: secret[1:]}}}, "31 bytes"},
		{"two keys of an id", payload.Config{
			Stores: []payload.Named{{Name: "a", Store: store}}, Keys: []payload.Key{{ID: "k", Secret: secret}, {ID: "k", Secret: secret}},
		}, "twice"},
		{"a key without id", payload.Config{Stores: []payload.Named{{Name: "a", Store: store}}, Keys: []payload.Key{{Secret: secret}}}, "a name is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := payload.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{0xfe}, payload.SecretBytes)
	for _, text := range []string{
		hex.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret) + "\n", base64.RawURLEncoding.EncodeToString(secret),
	} {
		if got, err := payload.ParseSecret(text); err != nil || !bytes.Equal(got, secret) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "password", hex.EncodeToString(secret[1:])} {
		if _, err := payload.ParseSecret(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// TestSeveralStores shows that the last store takes what is written and all are read.
func TestSeveralStores(t *testing.T) {
	t.Parallel()
	a, b := payloadtest.NewMemory(), payloadtest.NewMemory()
	before, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "a", Store: a}}})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := before.Put(t.Context(), strings.NewReader("old"), 10)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	after, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "a", Store: a}, {Name: "b", Store: b}}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	next, err := after.Put(t.Context(), strings.NewReader("new"), 10)
	if err != nil || a.Len() != 1 || b.Len() != 1 {
		t.Fatalf("%d and %d objects, %v", a.Len(), b.Len(), err)
	}
	for want, ref := range map[string]payload.Ref{"old": ref, "new": next} {
		r, err := after.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		r.Close()
	}
	if keys, err := after.Keys(t.Context(), "b", "", now, 10); len(keys) != 0 || err != nil {
		t.Errorf("before its time: %v, %v", keys, err)
	}
	if keys, err := after.Keys(t.Context(), "b", "", now.Add(time.Millisecond), 10); len(keys) != 1 || err != nil {
		t.Errorf("got %v, %v", keys, err)
	}
	if err := after.Delete(t.Context(), []payload.Ref{ref, next}); err != nil || a.Len()+b.Len() != 0 {
		t.Errorf("%d and %d objects left, %v", a.Len(), b.Len(), err)
	}
	if err := after.Delete(t.Context(), []payload.Ref{{Store: "c"}}); !errors.Is(err, payload.ErrNoStore) {
		t.Errorf("got %v", err)
	}
}

// TestBomb shows that a compressed object gives no more than its reference says.
func TestBomb(t *testing.T) {
	t.Parallel()
	store := payloadtest.NewMemory()
	set, err := payload.New(payload.Config{Stores: []payload.Named{{Name: "a", Store: store}}, Compress: true})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := set.Put(t.Context(), io.LimitReader(zeros{}, 100<<20), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	ref.Size = 10
	r, err := set.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); len(got) > 10 || !errors.Is(err, payload.ErrCorrupt) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestObserve shows what is counted, and what is no error of a store.
func TestObserve(t *testing.T) {
	t.Parallel()
	var seen []payload.Done
	store := payloadtest.NewMemory()
	set, err := payload.New(payload.Config{
		Stores: []payload.Named{{Name: "a", Store: store}}, Observe: func(d payload.Done) { seen = append(seen, d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := set.Put(t.Context(), strings.NewReader("12345"), 10)
	_, _ = set.Put(t.Context(), strings.NewReader("12345"), 1)
	r, err := set.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(r)
	r.Close()
	store.Fail(errors.New("gone"))
	_ = set.Delete(t.Context(), []payload.Ref{ref})
	want := []payload.Done{
		{Verb: payload.Put, Store: "a", Objects: 1, Bytes: 5},
		{Verb: payload.Put, Store: "a"},
		{Verb: payload.Get, Store: "a", Objects: 1, Bytes: 5},
	}
	if len(seen) != 4 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] || seen[3].Err == nil {
		t.Errorf("got %+v", seen)
	}
}
