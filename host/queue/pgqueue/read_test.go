package pgqueue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/testing/postgres"
)

// A text that no column can hold names nothing, which is no fault of the database's.
func TestTextsOfNoColumn(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	ctx := t.Context()
	for _, text := range []string{"a\x00b", "\xff"} {
		if _, err := s.Job(ctx, text); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			t.Errorf("job %q: %v", text, err)
		}
		if _, err := s.KV(ctx, "w", text, 1); jobhost.CodeOf(err) != jobhost.CodeNotFound {
			t.Errorf("key %q: %v", text, err)
		}
		for _, q := range []record.ListQuery{{Worker: text}, {Parent: text}, {Labels: map[string]string{text: "v"}}, {Labels: map[string]string{"n": text}}} {
			q.Limit = 1
			if jobs, err := s.Jobs(ctx, q); err != nil || len(jobs) > 0 {
				t.Errorf("jobs of %+v: %v, %v", q, jobs, err)
			}
		}
		for _, q := range []record.DeadQuery{{Worker: text}, {Code: text}, {Category: jobhost.Category(text)}} {
			q.Limit = 1
			if letters, _, err := s.Dead(ctx, q); err != nil || len(letters) > 0 {
				t.Errorf("dead letters of %+v: %v, %v", q, letters, err)
			}
		}
		if noted, gone, err := s.StatesOf(ctx, text); err != nil || noted || gone {
			t.Errorf("states of %q: %v, %v, %v", text, noted, gone, err)
		}
		if live, err := s.Live(ctx, []string{text}); err != nil || !slices.Equal(live, []bool{false}) {
			t.Errorf("reference %q: %v, %v", text, live, err)
		}
		if size, err := s.KVSize(ctx, text, 1); err != nil || size != 0 {
			t.Errorf("keys of worker %q: %d, %v", text, size, err)
		}
		if list, err := s.KVList(ctx, record.KVQuery{Worker: "w", Prefix: text, Limit: 1}); err != nil || len(list) > 0 {
			t.Errorf("keys with the prefix %q: %v, %v", text, list, err)
		}
	}
}

// A prefix may end with any character, also with the last of those that are as many bytes long.
func TestKeysWithPrefix(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Shared(t).Schema(t))
	keys := []string{"a", "a\x7f", "a\x7fb", "a\u0080", "a\u07ff", "a\u07ffb", "a\ud7ff", "a\ud7ffb", "a\ue000", "a\uffff", "a\U0010ffff", "a\U0010ffffb", "b"}
	postgres.Shared(t).Exec(t,
		"INSERT INTO "+s.schema+".worker VALUES (1, 'w')",
		"INSERT INTO "+s.schema+".kv SELECT 1, key, 1, 0, 1, 0, '' FROM unnest(ARRAY['"+strings.Join(keys, "','")+"']) AS key")
	for _, prefix := range append([]string{"", "\U0010ffff", "c"}, keys...) {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		list, err := s.KVList(t.Context(), record.KVQuery{Worker: "w", Prefix: prefix, Limit: 100, Now: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list {
			got = append(got, list[i].Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("prefix %q: %q, want %q", prefix, got, want)
		}
	}
}
