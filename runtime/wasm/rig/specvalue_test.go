package rig_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// specValue is an argument or result of the WebAssembly test suite.
type specValue struct {
	Type     string          `json:"type"`
	LaneType string          `json:"lane_type"`
	Value    json.RawMessage `json:"value"`
}

// lanes returns the texts of the lanes, or the one text of a scalar, and how
// many bits each has.
func (v *specValue) lanes() (texts []string, width int, err error) {
	kind := v.Type
	if kind == "v128" {
		kind = v.LaneType
		err = json.Unmarshal(v.Value, &texts)
	} else {
		texts = []string{"null"}
		if len(v.Value) > 0 {
			err = json.Unmarshal(v.Value, &texts[0])
		}
	}
	switch kind {
	case "i8":
		width = 8
	case "i16":
		width = 16
	case "i32", "f32":
		width = 32
	default:
		width = 64
	}
	return texts, width, err
}

// words returns the value as wazero takes it.
func (v *specValue) words() ([]uint64, error) {
	texts, width, err := v.lanes()
	if err != nil {
		return nil, err
	}
	words := make([]uint64, (len(texts)*width+63)/64)
	for i, text := range texts {
		bits, err := v.bits(text, width)
		if err != nil {
			return nil, err
		}
		words[i*width/64] |= bits << (i * width % 64)
	}
	return words, nil
}

func (v *specValue) bits(text string, width int) (uint64, error) {
	switch {
	case text == "null":
		return 0, nil
	case strings.HasPrefix(text, "-"):
		n, err := strconv.ParseInt(text, 10, width)
		return uint64(n) & (math.MaxUint64 >> (64 - width)), err
	}
	n, err := strconv.ParseUint(text, 10, width)
	if v.Type == "externref" {
		n++ // wazero's 0 is null
	}
	return n, err
}

// match reports whether a result is the one that is expected, lane by lane; the
// rest of the words follows.
func (v *specValue) match(got []uint64) (ok bool, rest []uint64, err error) {
	texts, width, err := v.lanes()
	if err != nil {
		return false, nil, err
	}
	n := (len(texts)*width + 63) / 64
	if len(got) < n {
		return false, nil, fmt.Errorf("only %d words are left", len(got))
	}
	if len(v.Value) == 0 { // any reference
		return true, got[n:], nil
	}
	for i, text := range texts {
		bits := got[i*width/64] >> (i * width % 64) & (math.MaxUint64 >> (64 - width))
		if text == "nan:canonical" || text == "nan:arithmetic" {
			if !isNaN(bits, width, text == "nan:canonical") {
				return false, got[n:], nil
			}
			continue
		}
		want, err := v.bits(text, width)
		if err != nil || want != bits {
			return false, got[n:], err
		}
	}
	return true, got[n:], nil
}

// isNaN reports whether bits are a quiet NaN, if canonical one without payload.
func isNaN(bits uint64, width int, canonical bool) bool {
	quiet, payload := uint64(0x7fc0_0000), uint64(0x003f_ffff)
	if width == 64 {
		quiet, payload = 0x7ff8_0000_0000_0000, 0x0007_ffff_ffff_ffff
	}
	return bits&quiet == quiet && (!canonical || bits&payload == 0)
}
