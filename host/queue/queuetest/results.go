package queuetest

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobhost/jobhost/host/queue/record"
)

// testResults reads the results of a job in pieces.
func testResults(t *testing.T, h Harness) {
	s := open(t, h)
	s.succeed(s.submit(spec("before", "w")))
	key := s.submit(spec("a", "w", tasks(6)))
	result := func(i int, data []byte, ref string) record.ResultRecord {
		op := settlement(key+record.Key(i), record.Succeeded)
		op.Result, op.ResultRef, op.ResultSize = data, ref, int64(len(data))
		if ref != "" {
			op.Result, op.ResultSize = nil, 7
		}
		s.must(op)
		if ref != "" {
			return record.ResultRecord{Index: i, Ref: ref, Size: 7}
		}
		return record.ResultRecord{Index: i, Data: data, Size: len(data)}
	}
	all := []record.ResultRecord{
		result(0, []byte("zero"), ""),
		result(2, bytes.Repeat([]byte{1, 0}, 5000), ""),
		result(3, nil, ""),
		result(5, nil, "one/elsewhere"),
	}
	s.must(settlement(key+1, record.Dead)) // and 4 is open
	s.succeed(s.submit(spec("after", "w")))
	for _, c := range []struct {
		name              string
		from, limit, most int
		want              []record.ResultRecord
	}{
		{"all", 0, 100, 1 << 20, all},
		{"from one on", 2, 100, 1 << 20, all[1:]},
		{"from one that has none", 1, 100, 1 << 20, all[1:]},
		{"limited", 0, 2, 1 << 20, all[:2]},
		{"to a size", 0, 100, 10_003, all[:1]},
		{"to exactly a size", 0, 100, 10_004, all},
		{"one that is larger", 2, 100, 10, all[1:2]},
		{"beyond the last", 6, 100, 1 << 20, nil},
	} {
		got, err := s.Results(t.Context(), key, c.from, c.limit, c.most)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i := range got {
			if len(got[i].Data) == 0 {
				got[i].Data = nil
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
	if got, err := s.Results(t.Context(), key+1000, 0, 9, 9); len(got) > 0 || err != nil {
		t.Errorf("results of no job: %v, %v", got, err)
	}
}
