package pgdb

import (
	"bytes"
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// TestArrays: arrays are written as pgx writes them.
func TestArrays(t *testing.T) {
	t.Parallel()
	theirs, ours := pgtype.NewMap(), pgtype.NewMap()
	encodeArrays(ours)
	type named int64
	for _, tt := range []struct {
		name  string
		oid   uint32
		value any
		plain bool // it is left to pgx
	}{
		{"numbers", pgtype.Int8ArrayOID, []int64{0, 1, -1, math.MaxInt64, math.MinInt64}, false},
		{"no numbers", pgtype.Int8ArrayOID, []int64{}, false},
		{"nil numbers", pgtype.Int8ArrayOID, []int64(nil), false},
		{"small numbers", pgtype.Int2ArrayOID, []int16{0, -1, math.MaxInt16, math.MinInt16}, false},
		{"truths", pgtype.BoolArrayOID, []bool{true, false}, false},
		{"texts", pgtype.TextArrayOID, []string{"", "a", "NULL", `{"x",}`, "ä\n"}, false},
		{"no texts", pgtype.TextArrayOID, []string{}, false},
		{"nil texts", pgtype.TextArrayOID, []string(nil), false},
		{"bytes", pgtype.ByteaArrayOID, [][]byte{{}, []byte("a"), nil, {0, 255}}, false},
		{"no bytes", pgtype.ByteaArrayOID, [][]byte{}, false},
		{"nil bytes", pgtype.ByteaArrayOID, [][]byte(nil), false},
		{"numbers of a name", pgtype.Int8ArrayOID, []named{1, 2}, true},
		{"numbers as small ones", pgtype.Int2ArrayOID, []int64{1, 2}, true},
		{"texts as JSON", pgtype.JSONBArrayOID, []string{"1"}, true},
	} {
		want, err := theirs.Encode(tt.oid, pgtype.BinaryFormatCode, tt.value, []byte("before"))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		got, err := ours.Encode(tt.oid, pgtype.BinaryFormatCode, tt.value, []byte("before"))
		if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: got %x, %v; want %x", tt.name, got, err, want)
		}
		codec, _ := ours.TypeForOID(tt.oid)
		switch codec.Codec.PlanEncode(ours, tt.oid, pgtype.BinaryFormatCode, tt.value).(type) {
		case encodeFixed[int64], encodeFixed[int16], encodeFixed[bool], encodeTexts, encodeBytes:
			if tt.plain {
				t.Errorf("%s: pgx does not write them", tt.name)
			}
		default:
			if !tt.plain {
				t.Errorf("%s: pgx writes them", tt.name)
			}
		}
	}
}

// TestArraysInText: what is written as text is left to pgx.
func TestArraysInText(t *testing.T) {
	t.Parallel()
	theirs, ours := pgtype.NewMap(), pgtype.NewMap()
	encodeArrays(ours)
	want, err := theirs.Encode(pgtype.Int8ArrayOID, pgtype.TextFormatCode, []int64{1, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.Encode(pgtype.Int8ArrayOID, pgtype.TextFormatCode, []int64{1, 2}, nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// BenchmarkArrays writes a column of numbers.
func BenchmarkArrays(b *testing.B) {
	numbers := make([]int64, 1000)
	for i := range numbers {
		numbers[i] = int64(i) << 40
	}
	types := pgtype.NewMap()
	for _, who := range []string{"pgx", "own"} {
		if who == "own" {
			encodeArrays(types)
		}
		b.Run(who, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf, _ = types.Encode(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, numbers, buf[:0])
			}
		})
	}
}
