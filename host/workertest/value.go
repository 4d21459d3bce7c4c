package workertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// value is an expected value: a text that must match exactly, or JSON that must
// be equivalent.
type value struct {
	text   string
	isJSON bool // text is JSON in its canonical form
}

// valueOf converts a value of a TOML file: anything but text is JSON.
func valueOf(v any) (value, error) {
	if text, ok := v.(string); ok {
		return value{text: text}, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return value{}, fmt.Errorf("it can't be written as JSON: %w", err)
	}
	text, err := canonical(data, nil)
	return value{text: text, isJSON: true}, err
}

// bytes returns the value as it would be written.
func (v *value) bytes() []byte {
	var b bytes.Buffer
	if v.isJSON && json.Compact(&b, []byte(v.text)) == nil {
		return b.Bytes()
	}
	return []byte(v.text)
}

// compare compares bytes with the value.
func (v *value) compare(what string, got []byte) []Difference {
	if !v.isJSON {
		return compareBytes(what, []byte(v.text), got)
	}
	text, err := canonical(got, nil)
	if err != nil {
		return []Difference{{What: what, Want: string(v.bytes()), Got: shown(got) + " (" + err.Error() + ")"}}
	}
	return compareText(what, v.text, text)
}

// maxDepth bounds the nesting of JSON.
const maxDepth = 200

// canonical converts JSON to the form in which it is compared: indented, with
// names sorted, and without ignored fields. Equal numbers look the same.
func canonical(data []byte, ignore []string) (string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); errors.Is(err, io.EOF) {
		return "", errors.New("there is no JSON")
	} else if err != nil {
		return "", fmt.Errorf("this is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("more follows the JSON")
	}
	v, err := normal(v, ignore, 0)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return b.String(), nil
}

func normal(v any, ignore []string, depth int) (_ any, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if slices.Contains(ignore, name) {
				delete(v, name)
			} else if v[name], err = normal(v[name], ignore, depth+1); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = normal(v[i], ignore, depth+1); err != nil {
				return nil, err
			}
		}
	case json.Number:
		return normalNumber(v), nil
	}
	return v, nil
}

// normalNumber writes 1.0 and 1e0 as 1. Numbers that a float64 would change are
// kept.
func normalNumber(n json.Number) json.Number {
	if _, err := n.Int64(); err == nil && n != "-0" {
		return n
	}
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(string(n), ".eE") && n != "-0" {
		return n
	}
	const exact = 1 << 53
	if f == float64(int64(f)) && f < exact && f > -exact {
		return json.Number(strconv.FormatInt(int64(f), 10))
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// canonicalLines converts lines of JSON, each to its canonical form in one line.
func canonicalLines(data []byte, ignore []string) (string, error) {
	var b bytes.Buffer
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		text, err := canonical(line, ignore)
		if err == nil {
			err = json.Compact(&b, []byte(text))
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
