// Package salvage reads rows out of the pages of a damaged SQLite database:
//
//	root ─► inner pages ─► leaves          as far as pages can be read
//	leaf ─► pointer map ─► … ─► root       for leaves below an inner page that can't
//
// It knows SQLite's format itself (https://sqlite.org/fileformat2.html), since SQLite
// stops at the first page that makes no sense. It needs a database with a pointer map,
// as jobhost's are (auto_vacuum).
package salvage

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Row is a record of a table.
type Row struct {
	ID     int64 // of a table with rowids
	Values []any // nil, int64, float64, string or []byte
}

// Database is what is left of one.
type Database struct {
	file   io.ReaderAt
	size   int // of a page
	usable int // of it
	pages  uint32
	bad    map[uint32]bool

	owner map[uint32]uint32 // page of a tree → its root, as far as was walked
	// Unreadable counts the rows of which a part is on a page that can't be read.
	Unreadable int
}

// Open reads the header of a database. The bad pages are not read.
func Open(file io.ReaderAt, bad []uint32) (*Database, error) {
	header := make([]byte, 100)
	if _, err := file.ReadAt(header, 0); err != nil {
		return nil, fmt.Errorf("read the first page: %w", err)
	}
	d := &Database{file: file, size: int(binary.BigEndian.Uint16(header[16:])), bad: map[uint32]bool{}, owner: map[uint32]uint32{}}
	if d.size == 1 {
		d.size = 65536
	}
	if d.size < 512 || d.size&(d.size-1) != 0 || int(header[20]) > d.size-480 {
		return nil, fmt.Errorf("the first page can't be read: its page size is %d", d.size)
	}
	d.usable = d.size - int(header[20])
	for d.pages = 0; ; d.pages++ {
		if n, _ := file.ReadAt(header[:1], int64(d.pages)*int64(d.size)); n == 0 {
			break
		}
	}
	for _, p := range bad {
		d.bad[p] = true
	}
	return d, nil
}

// page reads a page; nil if it can't be read.
func (d *Database) page(n uint32) []byte {
	if n == 0 || n > d.pages || d.bad[n] {
		return nil
	}
	p := make([]byte, d.size)
	if _, err := d.file.ReadAt(p, int64(n-1)*int64(d.size)); err != nil {
		return nil
	}
	return p[:d.usable]
}

// The first byte of a page of a tree.
const (
	innerIndex, innerTable = 2, 5
	leafIndex, leafTable   = 10, 13
)

// Rows calls fn with every row of a table that can be read, given the page of its root. Rows of a table without
// rowids have the columns of its key first.
func (d *Database) Rows(root uint32, fn func(Row) error) error {
	if err := d.walk(root, root, fn); err != nil {
		return err
	}
	// Leaves below an inner page that can't be read still know where they belong.
	for n := uint32(2); n <= d.pages; n++ {
		if _, seen := d.owner[n]; seen || d.rootOf(n, 0) != root {
			continue
		}
		if err := d.walk(n, root, fn); err != nil {
			return err
		}
	}
	return nil
}

// rootOf climbs from a page of a tree to its root by the pointer map; 0 if it is none.
func (d *Database) rootOf(n uint32, depth int) uint32 {
	perMap := uint32(d.usable/5) + 1
	at := (n - 2) % perMap
	if n < 3 || at == 0 || depth > 40 {
		return 0
	}
	m := d.page(n - at)
	if m == nil {
		return 0
	}
	const isRoot, inTree = 1, 5
	switch entry := m[(at-1)*5:]; entry[0] {
	case isRoot:
		return n
	case inTree:
		return d.rootOf(binary.BigEndian.Uint32(entry[1:]), depth+1)
	}
	return 0
}

// walk reads the rows of a page and of those below it.
func (d *Database) walk(n, root uint32, fn func(Row) error) error {
	if _, seen := d.owner[n]; seen {
		return nil
	}
	d.owner[n] = root
	p := d.page(n)
	if p == nil {
		return nil
	}
	at := 0
	if n == 1 {
		at = 100
	}
	kind := p[at]
	inner := kind == innerIndex || kind == innerTable
	if !inner && kind != leafIndex && kind != leafTable {
		return nil
	}
	cells := at + 8
	if inner {
		cells += 4
	}
	for i := range int(binary.BigEndian.Uint16(p[at+3:])) {
		if cells+2*i+2 > len(p) {
			break
		}
		if err := d.cell(p, int(binary.BigEndian.Uint16(p[cells+2*i:])), kind, root, fn); err != nil {
			return err
		}
	}
	if inner {
		return d.walk(binary.BigEndian.Uint32(p[at+8:]), root, fn)
	}
	return nil
}

// cell reads what a page has at a place: a row, or the number of a page below, or both.
func (d *Database) cell(p []byte, at int, kind byte, root uint32, fn func(Row) error) error {
	r := reader{p: p, at: at}
	if kind == innerIndex || kind == innerTable {
		if err := d.walk(r.uint32(), root, fn); err != nil {
			return err
		}
	}
	if kind == innerTable {
		return nil
	}
	var row Row
	length := r.varint()
	if kind == leafTable {
		row.ID = int64(r.varint())
	}
	payload := d.payload(&r, length, kind == leafTable)
	if payload == nil {
		d.Unreadable++
		return nil
	}
	var ok bool
	if row.Values, ok = record(payload); !ok {
		d.Unreadable++
		return nil
	}
	return fn(row)
}

// payload returns the bytes of a record, part of which may be on overflow pages; nil if they can't be read.
func (d *Database) payload(r *reader, length uint64, table bool) []byte {
	if r.short || length > uint64(d.pages)*uint64(d.size) {
		return nil
	}
	u, total := d.usable, int(length)
	most := (u-12)*64/255 - 23
	if table {
		most = u - 35
	}
	if total <= most {
		return r.bytes(total)
	}
	least := (u-12)*32/255 - 23
	local := least + (total-least)%(u-4)
	if local > most {
		local = least
	}
	out := append([]byte(nil), r.bytes(local)...)
	for next := r.uint32(); len(out) < total; {
		p := d.page(next)
		if p == nil || r.short {
			return nil
		}
		out = append(out, p[4:4+min(u-4, total-len(out))]...)
		next = binary.BigEndian.Uint32(p)
	}
	return out
}

// record returns the values of a record.
func record(p []byte) (values []any, ok bool) {
	r := reader{p: p}
	length := int(r.varint())
	if r.short || length > len(p) {
		return nil, false
	}
	body := reader{p: p, at: length}
	for r.at < length {
		values = append(values, body.value(r.varint()))
	}
	return values, !r.short && !body.short
}

// reader takes bytes from a page; short is set when there are too few.
type reader struct {
	p     []byte
	at    int
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || r.at < 0 || r.at+n > len(r.p) {
		r.short = true
		return nil
	}
	r.at += n
	return r.p[r.at-n : r.at : r.at]
}

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// varint reads SQLite's form of an integer.
func (r *reader) varint() (v uint64) {
	for i := range 9 {
		b := r.bytes(1)
		if b == nil {
			return 0
		}
		if i == 8 {
			return v<<8 | uint64(b[0])
		}
		if v = v<<7 | uint64(b[0]&0x7f); b[0] < 0x80 {
			break
		}
	}
	return v
}

// value reads a value of a serial type.
func (r *reader) value(kind uint64) any {
	switch {
	case kind == 0:
		return nil
	case kind <= 6:
		return r.integer([]int{0, 1, 2, 3, 4, 6, 8}[kind])
	case kind == 7:
		return math.Float64frombits(uint64(r.integer(8)))
	case kind == 8, kind == 9:
		return int64(kind - 8)
	case kind >= 12 && kind < 1<<40:
		b := r.bytes(int(kind-12) / 2)
		if kind%2 == 1 {
			return string(b)
		}
		return append([]byte{}, b...)
	}
	r.short = true
	return nil
}

func (r *reader) integer(n int) int64 {
	b := r.bytes(n)
	if b == nil {
		return 0
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}
