package wire

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"slices"
	"unicode/utf8"
)

// chunk is how many bytes of a result are written at a time; a multiple of 3, so that base64
// needs no padding between two of them.
const chunk = 12 << 10

// Pieces yields the JSON of a task with data as its result, as Set and [json.Marshal] would
// write it, but little of it at a time: a result may become six times as long in JSON.
// The pieces are valid until the next one.
func (t TaskResult) Pieces(data []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		t.Size, t.Text, t.Base64 = len(data), nil, nil
		head, err := json.Marshal(t)
		if err != nil {
			yield(nil, err)
			return
		}
		member, next := `,"result":"`, textPiece
		if !utf8.Valid(data) {
			member, next = `,"result_base64":"`, base64Piece
		}
		text := slices.Concat(head[:len(head)-1], []byte(member))
		for len(data) > 0 {
			var n int
			if text, n, err = next(text, data); err != nil {
				yield(nil, err)
				return
			}
			if data = data[n:]; !yield(text, nil) {
				return
			}
			text = text[:0]
		}
		yield(append(text, `"}`...), nil)
	}
}

// textPiece appends the beginning of valid text as JSON, and says how much that is.
func textPiece(out, text []byte) ([]byte, int, error) {
	n := min(len(text), chunk)
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	quoted, err := json.Marshal(string(text[:n]))
	if err != nil {
		return nil, 0, err
	}
	return append(out, quoted[1:len(quoted)-1]...), n, nil
}

func base64Piece(out, data []byte) ([]byte, int, error) {
	n := min(len(data), chunk)
	return base64.StdEncoding.AppendEncode(out, data[:n]), n, nil
}
