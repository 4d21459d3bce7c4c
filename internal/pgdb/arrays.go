package pgdb

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// A commit sends some thirty arrays, with an element for each row that it writes. pgx makes an interface value of each
// element and asks the type map how to write it, which took more of the writer's time than all else. These write what
// columns are made of in one go, and leave every other type to pgx.

// arrayTypes are those of the arrays that commits send.
var arrayTypes = [...]uint32{pgtype.Int8ArrayOID, pgtype.Int2ArrayOID, pgtype.BoolArrayOID, pgtype.TextArrayOID, pgtype.ByteaArrayOID}

// encodeArrays makes a connection write arrays in this way.
func encodeArrays(types *pgtype.Map) {
	for _, oid := range arrayTypes {
		if t, known := types.TypeForOID(oid); known {
			types.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{t.Codec}})
		}
	}
}

// arrayCodec is the codec of an array.
type arrayCodec struct{ pgtype.Codec }

// PlanEncode implements [pgtype.Codec].
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []int64:
			if oid == pgtype.Int8ArrayOID {
				return planOf(pgtype.Int8OID, 8, func(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) })
			}
		case []int16:
			if oid == pgtype.Int2ArrayOID {
				return planOf(pgtype.Int2OID, 2, func(b []byte, n int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) })
			}
		case []bool:
			if oid == pgtype.BoolArrayOID {
				return planOf(pgtype.BoolOID, 1, appendBool)
			}
		case []string:
			if oid == pgtype.TextArrayOID {
				return encodeTexts{}
			}
		case [][]byte:
			if oid == pgtype.ByteaArrayOID {
				return encodeBytes{}
			}
		}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// encodeFixed writes an array whose elements have a size.
type encodeFixed[T any] struct {
	element uint32
	size    int
	add     func([]byte, T) []byte
}

func planOf[T any](element uint32, size int, add func([]byte, T) []byte) pgtype.EncodePlan {
	return encodeFixed[T]{element, size, add}
}

// Encode implements [pgtype.EncodePlan].
func (p encodeFixed[T]) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]T)
	if list == nil {
		return nil, nil
	}
	buf = appendHeader(buf, p.element, len(list), len(list)*(4+p.size), false)
	for _, v := range list {
		buf = p.add(binary.BigEndian.AppendUint32(buf, uint32(p.size)), v)
	}
	return buf, nil
}

// encodeTexts writes an array of texts.
type encodeTexts struct{}

// Encode implements [pgtype.EncodePlan].
func (encodeTexts) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]string)
	if list == nil {
		return nil, nil
	}
	size := 0
	for _, s := range list {
		size += 4 + len(s)
	}
	buf = appendHeader(buf, pgtype.TextOID, len(list), size, false)
	for _, s := range list {
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(s))), s...)
	}
	return buf, nil
}

// encodeBytes writes an array of byte strings, of which nil is NULL.
type encodeBytes struct{}

// Encode implements [pgtype.EncodePlan].
func (encodeBytes) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([][]byte)
	if list == nil {
		return nil, nil
	}
	size, nulls := 0, false
	for _, s := range list {
		size += 4 + len(s)
		nulls = nulls || s == nil
	}
	buf = appendHeader(buf, pgtype.ByteaOID, len(list), size, nulls)
	for _, s := range list {
		if s == nil {
			buf = binary.BigEndian.AppendUint32(buf, null)
			continue
		}
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(s))), s...)
	}
	return buf, nil
}

const null = 1<<32 - 1 // the length of NULL: -1

// appendHeader begins an array of one dimension, for whose elements it makes room.
func appendHeader(buf []byte, element uint32, n, size int, nulls bool) []byte {
	const header = 5 * 4
	buf = slices.Grow(buf, header+size)
	add := binary.BigEndian.AppendUint32
	flags := uint32(0)
	if nulls {
		flags = 1
	}
	buf = add(add(add(buf, 1), flags), element)
	return add(add(buf, uint32(n)), 1) // elements are counted from 1
}
