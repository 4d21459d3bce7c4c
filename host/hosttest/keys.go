package hosttest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
)

func (s *setup) wantKey(name string, want []byte) jobhost.Key {
	s.Helper()
	key, value, err := s.server.KeyValue(s.ctx, "test", name)
	s.check(err)
	if !bytes.Equal(value, want) || key.Name != name || key.Size != len(want) || key.Version == 0 || key.ChangedAt.IsZero() {
		s.Errorf("key %q is %+v with %q, want %q", name, key, value, want)
	}
	return key
}

func testKeys(s *setup) {
	for _, name := range []string{
		"a", "a/b c", "/", "//x/../y/", ".", "..", "?q=1#f", "100%", "%2F", "+&;", "\u00e4\u2028\U0001f600", strings.Repeat("k", jobhost.MaxKeyBytes),
	} {
		value := []byte("value of " + name + "\x00\xff")
		s.check(s.server.SetKey(s.ctx, "test", name, value, 0))
		first := s.wantKey(name, value)
		s.check(s.server.SetKey(s.ctx, "test", name, nil, 0))
		if next := s.wantKey(name, nil); next.Version <= first.Version || next.ExpiresAt != nil {
			s.Errorf("key %q was %+v and is %+v", name, first, next)
		}
		s.check(s.server.DeleteKey(s.ctx, "test", name))
		_, _, err := s.server.KeyValue(s.ctx, "test", name)
		s.wantCode(err, jobhost.CodeNotFound)
		s.wantCode(s.server.DeleteKey(s.ctx, "test", name), jobhost.CodeNotFound)
	}
	s.check(s.server.SetKey(s.ctx, "test", "brief", []byte("x"), time.Hour))
	if key := s.wantKey("brief", []byte("x")); key.ExpiresAt == nil || key.ExpiresAt.Sub(key.ChangedAt).Round(time.Second) != time.Hour {
		s.Errorf("a key that expires is %+v", key)
	}
	large := bytes.Repeat([]byte("x"), jobhost.MaxValueBytes)
	s.check(s.server.SetKey(s.ctx, "test", "large", large, 0))
	s.wantKey("large", large)
}

func testKeysRefused(s *setup) {
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("k", jobhost.MaxKeyBytes+1)} {
		s.wantCode(s.server.SetKey(s.ctx, "test", name, nil, 0), jobhost.CodeInvalid)
		_, _, err := s.server.KeyValue(s.ctx, "test", name)
		s.wantCode(err, jobhost.CodeInvalid)
		s.wantCode(s.server.DeleteKey(s.ctx, "test", name), jobhost.CodeInvalid)
	}
	s.wantCode(s.server.SetKey(s.ctx, "test", "a", nil, -time.Second), jobhost.CodeInvalid)
	s.wantCode(s.server.SetKey(s.ctx, "test", "a", make([]byte, jobhost.MaxValueBytes+1), 0), jobhost.CodeTooLarge)
	s.wantCode(s.server.SetKey(s.ctx, jobhost.WebhookWorker, "a", nil, 0), jobhost.CodeDenied)
	s.wantCode(s.server.SetKey(s.ctx, "other", "a", nil, 0), jobhost.CodeNotFound)
	_, _, err := s.server.KeyValue(s.ctx, "other", "a")
	s.wantCode(err, jobhost.CodeNotFound)
	_, err = s.server.Keys(s.ctx, jobhost.KeyFilter{Worker: "test", Limit: jobhost.MaxPage + 1})
	s.wantCode(err, jobhost.CodeInvalid)
}

func testListKeys(s *setup) {
	const keys, size = 25, 10
	for i := range keys {
		s.check(s.server.SetKey(s.ctx, "test", fmt.Sprintf("page/%02d?", i), make([]byte, i), 0))
	}
	s.check(s.server.SetKey(s.ctx, "test", "other", nil, 0))
	seen := 0
	for filter := (jobhost.KeyFilter{Worker: "test", Prefix: "page/", Limit: size}); ; {
		page, err := s.server.Keys(s.ctx, filter)
		s.check(err)
		for _, key := range page.Keys {
			if want := fmt.Sprintf("page/%02d?", seen); key.Name != want || key.Size != seen {
				s.Fatalf("key %d is %+v, want %s", seen, key, want)
			}
			seen++
		}
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if seen != keys {
		s.Errorf("the pages have %d keys, want %d", seen, keys)
	}
	all, err := s.server.Keys(s.ctx, jobhost.KeyFilter{Worker: "test"})
	if err != nil || len(all.Keys) != keys+1 || all.Next != "" || all.Keys[0].Name != "other" {
		s.Errorf("all keys are %+v, %v", all, err)
	}
	none, err := s.server.Keys(s.ctx, jobhost.KeyFilter{Worker: "other"})
	if err != nil || none.Keys == nil || len(none.Keys) != 0 {
		s.Errorf("another worker has %+v, %v", none, err)
	}
}
