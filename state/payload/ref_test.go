package payload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobhost/jobhost/state/payload"
)

func aRef() payload.Ref {
	return payload.Ref{
		Store: "local", Key: payload.NewKey(time.UnixMilli(1_700_000_000_000)), Size: 200 << 20,
		Digest: [32]byte{1, 2, 3}, Zstd: true, Sealed: "k1",
	}
}

func TestParseRef(t *testing.T) {
	t.Parallel()
	r := aRef()
	for _, ref := range []payload.Ref{r, {Store: "s", Key: r.Key}, {Store: "s", Key: r.Key, Sealed: "2026-11"}} {
		got, err := payload.ParseRef(ref.String())
		if err != nil || got != ref {
			t.Errorf("%s: got %+v, %v", ref, got, err)
		}
		if payload.NameOf(ref.String()) != ref.Name() {
			t.Errorf("%s has the name %s", ref, payload.NameOf(ref.String()))
		}
	}
	text := r.String()
	for _, bad := range []string{
		"", ":", "::::::", text + ":", text + "0", text[5:], strings.ToUpper(text), " " + text, text + "\n",
		strings.Replace(text, ":z:", ":y:", 1), strings.Replace(text, ":209715200:", ":-1:", 1),
		strings.Replace(text, ":209715200:", ":+209715200:", 1), strings.Replace(text, ":209715200:", ":0209715200:", 1),
		strings.Replace(text, ":209715200:", ":99999999999999999999:", 1), strings.Replace(text, "local:", "../x:", 1),
		strings.Replace(text, "local:", "local:../", 1), strings.Replace(text, ":k1:", ":k 1:", 1),
	} {
		if got, err := payload.ParseRef(bad); err == nil {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

// TestNameEnd shows that the references with a name are those between it and its end.
func TestNameEnd(t *testing.T) {
	t.Parallel()
	r := aRef()
	other := aRef()
	other.Key = r.Key[:len(r.Key)-1] + string(r.Key[len(r.Key)-1]^1)
	low, high := r.Name(), payload.NameEnd(r.Name())
	if text := r.String(); text < low || text >= high {
		t.Errorf("%s is not between %s and %s", text, low, high)
	}
	if text := other.String(); text >= low && text < high {
		t.Errorf("%s is between %s and %s", text, low, high)
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add(aRef().String())
	f.Add("local:0:0:-::")
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := payload.ParseRef(text)
		if err == nil && ref.String() != text {
			t.Errorf("%q is read as %q", text, ref.String())
		}
		if err == nil && payload.NameOf(text) != ref.Name() {
			t.Errorf("%q has the name %q", text, payload.NameOf(text))
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_123)
	key := payload.NewKey(now)
	at, ok := payload.KeyTime(key)
	if !ok || !at.Equal(now) || len(key) > payload.MaxKeyBytes {
		t.Errorf("%s is of %v", key, at)
	}
	if later := payload.NewKey(now.Add(time.Millisecond)); later <= key {
		t.Errorf("%s comes before %s", later, key)
	}
	for _, bad := range []string{"", key[1:], key + "0", strings.ToUpper(key), "-" + key[1:], key[:12] + "_" + key[13:]} {
		if _, ok := payload.KeyTime(bad); ok {
			t.Errorf("%q was taken for a key", bad)
		}
	}
}

// TestOrigin: who made an object stands in its key, which is one like all others.
func TestOrigin(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	one, other := payload.Origin{1, 2, 3, 4}, payload.Origin{1, 2, 3, 5}
	key := one.NewKey(now)
	if at, ok := payload.KeyTime(key); !ok || !at.Equal(now) {
		t.Errorf("%s: %v, %v", key, at, ok)
	}
	if got, ok := payload.OriginOf(key); !ok || got != one || got == other {
		t.Errorf("%s is of %v, %v", key, got, ok)
	}
	if _, ok := payload.OriginOf(key[:20]); ok {
		t.Error("a part of a key has an origin")
	}
	for _, bad := range []string{"", "0102030", "010203045", "0102030G", "0102030A"} {
		if got, ok := payload.ParseOrigin(bad); ok {
			t.Errorf("%q is %v", bad, got)
		}
	}
	if key == one.NewKey(now) {
		t.Error("two keys are one")
	}
}
