package sqlitedb

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/jobhost/jobhost"
	"github.com/ncruces/go-sqlite3"
)

// Sum is a checksum of what a row holds. It is written with the row, compared
// whenever the row's content is read, and begins with what the row is: its
// table and its key. So it finds what the checksum of a page can't, because the
// page is whole: a page of zeros, an older version of the page, the page of
// another row.
//
// It finds accidents, not attacks: anyone who can write to the file can compute it.
type Sum struct{ d xxhash.Digest }

// SumOf begins the checksum of a row of a table. The key follows, then the content.
func SumOf(table string) Sum {
	var s Sum
	s.d.Reset()
	s.Text(table)
	return s
}

// Int adds an integer.
func (s *Sum) Int(v int64) *Sum {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	_, _ = s.d.Write(b[:]) // never fails
	return s
}

// Text adds a string, with its length.
func (s *Sum) Text(v string) *Sum {
	s.Int(int64(len(v)))
	_, _ = s.d.WriteString(v)
	return s
}

// Blob adds bytes, with their length.
func (s *Sum) Blob(v []byte) *Sum {
	s.Int(int64(len(v)))
	_, _ = s.d.Write(v)
	return s
}

// Value returns the checksum as a column holds it.
func (s *Sum) Value() int64 { return int64(s.d.Sum64()) }

// ColSum reports whether column i holds that checksum. A row that was written
// before there were any has NULL there, which is taken for right.
func (s *Stmt) ColSum(i int, sum int64) bool { return s.ColNull(i) || s.ColInt(i) == sum }

// ColNull reports whether column i is NULL.
func (s *Stmt) ColNull(i int) bool { return s.stmt.ColumnType(i) == sqlite3.NULL }

// Damaged is the error for content that is not what was written.
func Damaged(format string, args ...any) error {
	return &jobhost.Error{
		Code:    jobhost.CodeDamaged,
		Message: fmt.Sprintf(format, args...) + " is damaged: it is not what was written",
		Hint:    hintDamage,
	}
}

// IsDamaged reports whether an error says that something in the database, a page
// or what a row holds, is not what was written.
func IsDamaged(err error) bool { return isDamage(err) || jobhost.CodeOf(err) == jobhost.CodeDamaged }

// IsDamagedRow reports whether an error is that of [Damaged]: the connection can go on.
func IsDamagedRow(err error) bool {
	return !isDamage(err) && jobhost.CodeOf(err) == jobhost.CodeDamaged
}
