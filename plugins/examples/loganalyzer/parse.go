package main

import (
	"bytes"
	"math"
	"time"
)

// entry is the data of a line; its slices point into it.
type entry struct {
	client []byte
	time   int64 // Unix seconds
	path   []byte
	status int // 100 to 599
	bytes  int64
}

// parse reads a line such as
//
//	192.0.2.7 - kim [04/Mar/2025:06:25:14 +0100] "GET /a?b=1 HTTP/1.1" 200 512 "-" "curl/8.5"
//
// where everything after the size may be missing, or be anything.
func parse(line []byte) (e entry, ok bool) {
	e.client, line, ok = bytes.Cut(line, []byte{' '})
	if !ok || len(e.client) == 0 {
		return e, false
	}
	// User names may contain spaces, but hardly a bracket.
	_, line, ok = bytes.Cut(line, []byte(" ["))
	if !ok || len(line) < len(timeLayout) {
		return e, false
	}
	if e.time, ok = parseTime(line[:len(timeLayout)]); !ok {
		return e, false
	}
	line, ok = bytes.CutPrefix(line[len(timeLayout):], []byte(`] "`))
	if !ok {
		return e, false
	}
	end := closingQuote(line)
	if end < 0 {
		return e, false
	}
	if e.path, ok = path(line[:end]); !ok {
		return e, false
	}
	return e, e.parseAnswer(line[end+1:])
}

// parseAnswer reads the status and the size from " 200 512 …".
func (e *entry) parseAnswer(rest []byte) bool {
	if len(rest) < 6 || rest[0] != ' ' || rest[4] != ' ' {
		return false
	}
	status, ok := number(rest[1:4])
	if !ok || status < 100 || status > 599 {
		return false
	}
	e.status = int(status)
	size, _, _ := bytes.Cut(rest[5:], []byte{' '})
	if string(size) == "-" { // none was sent
		return true
	}
	e.bytes, ok = number(size)
	return ok
}

// closingQuote returns where the quoted text ends; quotes in it are escaped
// with a backslash. −1 = nowhere.
func closingQuote(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// path returns the path of a request line without its query.
func path(request []byte) ([]byte, bool) {
	_, rest, ok := bytes.Cut(request, []byte{' '})
	if !ok {
		return nil, false
	}
	target, _, ok := bytes.Cut(rest, []byte{' '})
	if !ok || len(target) == 0 {
		return nil, false
	}
	target, _, _ = bytes.Cut(target, []byte{'?'})
	return target, true
}

// number parses decimal digits, up to what an int64 holds with room to add.
func number(digits []byte) (int64, bool) {
	if len(digits) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' || n > math.MaxInt32<<16 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

const timeLayout = "02/Jan/2006:15:04:05 -0700"

const months = "JanFebMarAprMayJunJulAugSepOctNovDec"

// parseTime parses a time in timeLayout. It takes half as long as time.Parse,
// and accepts nothing that time.Parse rejects: see FuzzParseTime.
func parseTime(t []byte) (unix int64, ok bool) {
	if t[2] != '/' || t[6] != '/' || t[11] != ':' || t[14] != ':' || t[17] != ':' || t[20] != ' ' {
		return 0, false
	}
	month := bytes.Index([]byte(months), t[3:6])
	if month < 0 || month%3 != 0 {
		return 0, false
	}
	var n [7]int64 // day, year, hour, minute, second, hours and minutes of the zone
	for i, part := range [...][]byte{t[:2], t[7:11], t[12:14], t[15:17], t[18:20], t[22:24], t[24:26]} {
		if n[i], ok = number(part); !ok {
			return 0, false
		}
	}
	if n[2] > 23 || n[3] > 59 || n[4] > 59 || n[5] > 24 || n[6] > 59 {
		return 0, false
	}
	date := time.Date(int(n[1]), time.Month(month/3+1), int(n[0]), int(n[2]), int(n[3]), int(n[4]), 0, time.UTC)
	if date.Day() != int(n[0]) { // 30 February is the 1st or 2nd of March here
		return 0, false
	}
	zone := n[5]*3600 + n[6]*60
	switch t[21] {
	case '+':
		return date.Unix() - zone, true
	case '-':
		return date.Unix() + zone, true
	}
	return 0, false
}
