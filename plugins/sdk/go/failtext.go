package jobhost

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Kinds of failure, as numbered by the ABI.
const (
	kindRetryable = 1
	kindPermanent = 2
	kindSnooze    = 3
)

// The host keeps no more than this of a failure. It would treat a much longer
// text as plain text, so texts are cut before.
const (
	maxMessage = 4 << 10
	maxContext = 16 << 10
)

// failText returns in terms of the ABI how an error ends the attempt.
func failText(err error) (kind int32, text string) {
	if s, ok := errors.AsType[*SnoozeError](err); ok {
		ms := max((s.After+time.Millisecond-1)/time.Millisecond, 1)
		return kindSnooze, `{"after_ms":` + strconv.FormatInt(int64(ms), 10) + `}`
	}
	f := &Failure{}
	if found, ok := errors.AsType[*Failure](err); ok {
		f = found
	}
	kind = kindRetryable
	if f.Permanent {
		kind = kindPermanent
	}
	return kind, f.text(err.Error())
}

// panicText returns the failure text for a panic with v.
func panicText(v any) (text string) {
	message := "panic"
	switch v := v.(type) {
	case error:
		message += ": " + v.Error()
	case string:
		message += ": " + v
	case interface{ String() string }:
		message += ": " + v.String()
	}
	f := Failure{Code: "panic", Category: System, Severity: SeverityCritical}
	return f.text(message)
}

// text returns the failure as JSON, written by hand to keep workers small.
// Empty fields are left out: the host has defaults for them.
func (f *Failure) text(message string) string {
	b := []byte(`{"message":`)
	b = appendQuoted(b, message[:min(len(message), maxMessage)])
	for _, field := range [...][2]string{
		{"code", f.Code}, {"category", string(f.Category)}, {"severity", string(f.Severity)},
	} {
		if field[1] != "" {
			b = append(b, `,"`+field[0]+`":`...)
			b = appendQuoted(b, field[1][:min(len(field[1]), maxMessage)])
		}
	}
	if len(f.Context) > 0 {
		b = append(b, `,"context":`...)
		b = appendContext(b, f.Context)
	}
	return string(append(b, '}'))
}

func appendContext(b []byte, context map[string]string) []byte {
	start, comma := len(b), byte('{')
	for _, key := range slices.Sorted(maps.Keys(context)) {
		b = append(b, comma)
		b = append(appendQuoted(b, key), ':')
		b = appendQuoted(b, context[key])
		comma = ','
	}
	if size := len(b) + 1 - start; size > maxContext {
		return append(b[:start], `{"omitted":"`+strconv.Itoa(size)+` bytes are over the limit of `+strconv.Itoa(maxContext)+`"}`...)
	}
	return append(b, '}')
}

// appendQuoted appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
