package sealed

import (
	"encoding/binary"
	"hash/crc32"
)

// Bytes is how many bytes a page of a sealed file has at its end that are not
// SQLite's: the number of the page, and two checksums of the rest. Files of 8 such
// bytes are older: they have a checksum of the library, which doesn't distinguish one page
// from another, and is 0 for a page of zeros.
const (
	Bytes    = 12
	oldBytes = 8
)

// form is how the pages of a file end.
type form int

const (
	unsealed form = iota
	older
	present
	broken // the first page contradicts itself
)

// formOf returns the form of a file by the first bytes of its first page.
func formOf(header []byte) form {
	const sealedLayout = 2 // the first user_version of jobhost with seals
	version := binary.BigEndian.Uint32(header[60:])
	switch header[20] { // the bytes of each page that are not SQLite's
	case Bytes:
		return present
	case oldBytes:
		if version < sealedLayout {
			return older
		}
	case 0:
		if version < sealedLayout {
			return unsealed
		}
	}
	return broken
}

// castagnoli is the one of the two polynomials that isn't the standard library's default.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the checksums of what is SQLite's of a page. Both begin with its
// number, so no two pages have the same ones, whatever is in them.
func sum(page uint32, p []byte) uint64 {
	p = p[:len(p)-Bytes]
	return uint64(crc32.Update(page, castagnoli, p))<<32 | uint64(crc32.Update(page, crc32.IEEETable, p))
}

// seal writes the end of a page.
func seal(page uint32, p []byte, sum uint64) {
	end := p[len(p)-Bytes:]
	binary.LittleEndian.PutUint32(end, page)
	binary.LittleEndian.PutUint64(end[4:], sum)
}

// SealPage seals a page, whatever is in it, as jobhost does when it writes it: for tests
// of what a seal can't show.
func SealPage(number uint32, p []byte) { seal(number, p, sum(number, p)) }

// isSealed reports whether a page is what was written at its place.
func isSealed(page uint32, p []byte, sum uint64) bool {
	end := p[len(p)-Bytes:]
	return binary.LittleEndian.Uint32(end) == page && binary.LittleEndian.Uint64(end[4:]) == sum
}

// oldSum is the checksum of the library's form.
func oldSum(p []byte) uint64 {
	var s1, s2 uint32
	for p = p[:len(p)-oldBytes]; len(p) >= 8; p = p[8:] {
		s1 += binary.LittleEndian.Uint32(p) + s2
		s2 += binary.LittleEndian.Uint32(p[4:]) + s1
	}
	return uint64(s2)<<32 | uint64(s1)
}

// isPage reports whether so many bytes can be a page.
func isPage(n int) bool { return n >= 512 && n <= 65536 && n&(n-1) == 0 }
