package queuetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// testKeys: changes of keys, their versions, and who sees them.
func testKeys(t *testing.T, h Harness) {
	s := open(t, h)
	s.change(epoch+1, set("a", "1"), set("b", ""))
	a, b := s.wantKey("a", "1"), s.wantKey("b", "")
	if a.Version != 1 || b.Version != 2 || a.ChangedAt != epoch+1 {
		t.Fatalf("the first keys are %+v and %+v", a, b)
	}
	s.change(epoch+2, add("a", 41), record.KVChange{Key: "b", Kind: record.KVDelete}, add("c", -5), record.KVChange{Key: "none", Kind: record.KVDelete})
	s.wantKey("b", "-")
	s.wantKey("c", "-5")
	if a = s.wantKey("a", "42"); a.Version != 3 || a.ChangedAt != epoch+2 {
		t.Fatalf("the changed key is %+v", a)
	}
	// A version never comes again.
	s.change(epoch+3, set("b", "anew"))
	if b = s.wantKey("b", "anew"); b.Version != 5 {
		t.Fatalf("the key that was made anew is %+v", b)
	}
	checked := record.KVChange{Key: "b", Value: []byte("next"), Checked: true, Version: 5}
	s.change(epoch+4, checked)
	s.refused(&record.ChangeKV{Worker: "w", At: epoch + 5, Changes: []record.KVChange{set("a", "0"), checked}}, jobhost.CodeConflict)
	s.wantKey("a", "42")
	// Another worker has keys of its own.
	s.must(&record.ChangeKV{Worker: "x", At: epoch, Changes: []record.KVChange{set("a", "of x")}})
	s.wantKey("a", "42")
	if e, err := s.KV(t.Context(), "x", "a", epoch); err != nil || string(e.Value) != "of x" || e.Version != 1 {
		t.Fatalf("the other worker's key is %+v, %v", e, err)
	}
	_, err := s.KV(t.Context(), "nobody", "a", epoch)
	wantCode(t, err, jobhost.CodeNotFound)
	large := strings.Repeat("x", 1<<20)
	s.change(epoch+6, set("large", large))
	s.wantKey("large", large)
}

// testKeysExpire: a key whose time is over is gone for every reader.
func testKeysExpire(t *testing.T, h Harness) {
	s := open(t, h)
	until := func(key, value string, expires record.Millis) record.KVChange {
		return record.KVChange{Key: key, Value: []byte(value), Expires: expires}
	}
	s.change(epoch, until("n", "7", epoch+10), until("kept", "1", epoch+10), until("soon", "x", epoch+5))
	s.change(epoch+1, set("kept", "1"), add("n", 1)) // one for good, the other's time stays
	for _, tt := range []struct {
		now  record.Millis
		want string
	}{{epoch + 4, "kept n soon"}, {epoch + 5, "kept n"}, {epoch + 9, "kept n"}, {epoch + 10, "kept"}} {
		list, err := s.KVList(t.Context(), record.KVQuery{Worker: "w", Limit: 10, Now: tt.now})
		if err != nil || names(list) != tt.want {
			t.Fatalf("at %d there is %q, %v; want %q", tt.now-epoch, names(list), err, tt.want)
		}
	}
	_, err := s.KV(t.Context(), "w", "n", epoch+10)
	wantCode(t, err, jobhost.CodeNotFound)
	// What expired counts as 0, and its version is not that of the key any more.
	gone := record.KVChange{Key: "soon", Value: []byte("new"), Checked: true}
	s.change(epoch+20, add("n", 1), gone)
	s.wantKey("n", "1")
	if e := s.wantKey("soon", "new"); e.Expires != 0 {
		t.Fatalf("a key that was made anew is %+v", e)
	}
}

func names(list []record.KVEntry) string {
	var keys []string
	for i := range list {
		keys = append(keys, list[i].Key)
	}
	return strings.Join(keys, " ")
}

// testQuota: what all keys of a worker cost is bounded; what has expired
// doesn't count, and there is always a way back.
func testQuota(t *testing.T, h Harness) {
	s := open(t, h)
	quota := 3 * record.KVCost("a", 10)
	put := func(at record.Millis, changes ...record.KVChange) *record.ChangeKV {
		return &record.ChangeKV{Worker: "w", At: at, Changes: changes, Quota: quota}
	}
	ten := strings.Repeat("x", 10)
	s.must(put(epoch, set("a", ten), set("b", ten), record.KVChange{Key: "c", Value: []byte(ten), Expires: epoch + 10}))
	if size, err := s.KVSize(t.Context(), "w", epoch); err != nil || size != quota {
		t.Fatalf("the keys cost %d, %v; want %d", size, err, quota)
	}
	if size, err := s.KVSize(t.Context(), "w", epoch+10); err != nil || size != record.KVCost("a", 10)*2 {
		t.Fatalf("without the one that expires the keys cost %d, %v", size, err)
	}
	s.refused(put(epoch+1, set("d", "")), jobhost.CodeExhausted)
	s.refused(put(epoch+1, set("a", ten+"x")), jobhost.CodeExhausted)
	s.must(put(epoch+1, set("a", strings.Repeat("y", 10))))
	s.must(put(epoch+10, set("d", ten))) // in the place of c
	s.wantKey("c", "-")
	s.refused(put(epoch+11, set("e", "")), jobhost.CodeExhausted)
	quota = 50
	s.must(put(epoch+12, set("a", "less"))) // still over it, but less so
	s.refused(put(epoch+13, set("a", ten)), jobhost.CodeExhausted)
	s.must(put(epoch+14, record.KVChange{Key: "a", Kind: record.KVDelete}, record.KVChange{Key: "b", Kind: record.KVDelete}, record.KVChange{Key: "d", Kind: record.KVDelete}))
	if size, err := s.KVSize(t.Context(), "w", epoch+14); err != nil || size != 0 {
		t.Fatalf("no keys cost %d, %v", size, err)
	}
}

// testListKeys: lists are in the order of bytes, by prefix, and go on after a key.
func testListKeys(t *testing.T, h Harness) {
	s := open(t, h)
	var changes []record.KVChange
	for i := range 25 {
		changes = append(changes, set(fmt.Sprintf("page/%02d", i), strings.Repeat("v", i)))
	}
	s.change(epoch, append(changes, set("Upper", ""), set("page", ""), set("pagf", ""), set("p\u00e4ge", ""), set("\U0010ffff", ""))...)
	list := func(prefix, after string, limit int) []record.KVEntry {
		t.Helper()
		list, err := s.KVList(t.Context(), record.KVQuery{Worker: "w", Prefix: prefix, After: after, Limit: limit, Now: epoch})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := names(list("", "page/22", 100)); got != "page/23 page/24 pagf p\u00e4ge \U0010ffff" {
		t.Fatalf("the end of the list is %q", got)
	}
	if got := names(list("page", "", 2)); got != "page page/00" {
		t.Fatalf("the beginning is %q", got)
	}
	wantSame(t, "prefixes nobody has", list("q", "", 10), []record.KVEntry(nil))
	seen, after := 0, ""
	for {
		page := list("page/", after, 10)
		for _, e := range page {
			if e.Size != seen || e.Value != nil || e.ChangedAt != epoch {
				t.Fatalf("entry %d is %+v", seen, e)
			}
			seen++
		}
		if len(page) < 10 {
			break
		}
		after = page[9].Key
	}
	if seen != 25 {
		t.Fatalf("the pages have %d keys", seen)
	}
}
