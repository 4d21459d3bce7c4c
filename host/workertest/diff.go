package workertest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what is shown.
const (
	contextLines = 3
	mostDiff     = 200 // lines of one diff
	mostEdits    = 500 // beyond which texts are shown as entirely different
	mostShown    = 400 // bytes of a value
)

// compareBytes compares bytes. Text is compared by lines, anything else by where it
// begins to differ.
func compareBytes(what string, want, got []byte) []Difference {
	switch {
	case bytes.Equal(want, got):
		return nil
	case isText(want) && isText(got), utf8.Valid(want) && utf8.Valid(got) && max(len(want), len(got)) <= 70:
		return compareText(what, string(want), string(got))
	}
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	show := func(b []byte) string {
		const most = 16
		from := max(at-most/2, 0)
		return fmt.Sprintf("%d bytes, which from byte %d on are % x", len(b), from, b[min(from, len(b)):min(from+most, len(b))])
	}
	return []Difference{{What: what, Want: show(want), Got: show(got)}}
}

// compareText compares texts.
func compareText(what, want, got string) []Difference {
	if want == got {
		return nil
	}
	d := Difference{What: what, Want: shown([]byte(want)), Got: shown([]byte(got))}
	if strings.Count(want, "\n") > 1 || strings.Count(got, "\n") > 1 || max(len(want), len(got)) > 70 {
		d.Diff = unified(want, got)
	}
	return []Difference{d}
}

// isText reports whether bytes can be shown as text.
func isText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexFunc(b, func(r rune) bool {
		return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r'
	}) < 0
}

// shown quotes a value, up to a maximum.
func shown(b []byte) string {
	if len(b) > mostShown {
		return fmt.Sprintf("%q… (%d bytes)", b[:mostShown], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// edit is a line of a diff: ' ' in both, '-' only in the wanted text, '+' only in
// the actual one.
type edit struct {
	kind byte
	line string
}

// unified returns the difference between two texts in the form of diff -u, without
// the header. It is truncated if long.
func unified(want, got string) string {
	edits := compareLines(split(want), split(got))
	var b strings.Builder
	lines, a, z := 0, 0, 0 // lines written, and lines passed in each text
	for i := 0; i < len(edits); {
		from, to := hunk(edits, i)
		if from == len(edits) {
			break
		}
		for ; i < from; i++ {
			a, z = a+1, z+1
		}
		inWant, inGot := count(edits[from:to])
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", a+min(inWant, 1), inWant, z+min(inGot, 1), inGot)
		for ; i < to; i++ {
			if lines++; lines > mostDiff {
				fmt.Fprintf(&b, "… (%d lines of the comparison more)\n", len(edits)-i)
				return b.String()
			}
			writeEdit(&b, edits[i])
		}
		a, z = a+inWant, z+inGot
	}
	return b.String()
}

func writeEdit(b *strings.Builder, e edit) {
	line, ended := strings.CutSuffix(e.line, "\n")
	if len(line) > 4*mostShown {
		line = strings.ToValidUTF8(line[:4*mostShown], "") + "…"
	}
	b.WriteByte(e.kind)
	b.WriteString(line)
	b.WriteByte('\n')
	if !ended {
		b.WriteString("\\ no newline at the end\n")
	}
}

// hunk returns the next part of a diff that has changes, with its context.
func hunk(edits []edit, from int) (begin, end int) {
	first := from
	for first < len(edits) && edits[first].kind == ' ' {
		first++
	}
	if first == len(edits) {
		return first, first
	}
	last := first
	for i := first; i < len(edits) && i-last <= 2*contextLines+1; i++ {
		if edits[i].kind != ' ' {
			last = i
		}
	}
	return max(first-contextLines, from), min(last+contextLines+1, len(edits))
}

func count(edits []edit) (want, got int) {
	for _, e := range edits {
		if e.kind != '+' {
			want++
		}
		if e.kind != '-' {
			got++
		}
	}
	return want, got
}

// split returns the lines of a text, each with its end.
func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// compareLines returns the shortest edit script from one text to another (Myers'
// algorithm): for each number of edits d it keeps how far each diagonal k gets.
func compareLines(want, got []string) []edit {
	n, m := len(want), len(got)
	most := min(n+m, mostEdits)
	furthest := make([]int, 2*most+2)
	at := func(k int) *int { return &furthest[(k+len(furthest))%len(furthest)] }
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, append([]int(nil), furthest...))
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || k != d && *at(k - 1) < *at(k + 1) {
				x = *at(k + 1)
			} else if d > 0 {
				x = *at(k - 1) + 1
			}
			for x < n && x-k >= 0 && x-k < m && want[x] == got[x-k] {
				x++
			}
			*at(k) = x
			if x >= n && x-k >= m {
				return walkBack(trace, want, got)
			}
		}
	}
	edits := make([]edit, 0, n+m)
	for _, line := range want {
		edits = append(edits, edit{'-', line})
	}
	for _, line := range got {
		edits = append(edits, edit{'+', line})
	}
	return edits
}

// walkBack reconstructs the path.
func walkBack(trace [][]int, want, got []string) []edit {
	x, y := len(want), len(got)
	var back []edit
	for d := len(trace) - 1; d >= 0; d-- {
		furthest, k := trace[d], x-y
		at := func(k int) int { return furthest[(k+len(furthest))%len(furthest)] }
		before := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			before = k + 1
		}
		fromX := at(before)
		fromY := fromX - before
		if d == 0 {
			fromX, fromY = 0, 0
		}
		for x > fromX && y > fromY {
			x, y = x-1, y-1
			back = append(back, edit{' ', want[x]})
		}
		switch {
		case d == 0:
		case x > fromX:
			x--
			back = append(back, edit{'-', want[x]})
		case y > fromY:
			y--
			back = append(back, edit{'+', got[y]})
		}
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}
