package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table writes aligned columns. Cells are escaped; empty ones become "-".
type table struct{ w *tabwriter.Writer }

// newTable starts a table on stdout, with a line of headings if there are any.
func (e *env) newTable(headings ...string) *table {
	t := &table{w: tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)}
	if len(headings) > 0 {
		t.row(headings...)
	}
	return t
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cell = printable(cell); cell == "" {
			cell = "-"
		}
		cells[i] = cell
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// mostCell is how much of a text for people a table shows, in characters.
const mostCell = 60

// shorten returns s with most characters at the most.
func shorten(s string, most int) string {
	text := []rune(strings.ToValidUTF8(s, "\ufffd"))
	if len(text) > most {
		text = append(text[:most-1:most-1], '…')
	}
	return string(text)
}

// field is a row of a table of names and values; without a value it is left out.
func (t *table) field(name, value string) {
	if value != "" {
		t.row(name, value)
	}
}

// labels are rows of labels, of which the first has a heading.
func (t *table) labels(labels map[string]string) {
	for i, name := range slices.Sorted(maps.Keys(labels)) {
		heading := ""
		if i == 0 {
			heading = "labels"
		}
		// Not a field: the heading of further labels is blank rather than a dash.
		_, _ = fmt.Fprintf(t.w, "%s\t%s\n", heading, printable(name+"="+labels[name]))
	}
}

// flush writes the rows so far; the widths of columns start anew after it.
func (t *table) flush() { _ = t.w.Flush() }

// andMore tells of what was left out.
func (e *env) andMore(n int, things string) {
	if n > 0 {
		_, _ = fmt.Fprintf(e.stdout, "and %s; -o json shows all\n", plural(n, things))
	}
}

// when shows a time: how long ago on a terminal, else as RFC 3339.
func (e *env) when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case !e.stdout.terminal:
		return t.UTC().Format(time.RFC3339)
	}
	d := e.now().Sub(t)
	if d < 0 {
		// A clock that is a little ahead should not make what happened look planned.
		if d > -time.Second {
			return "now"
		}
		return "in " + roughly(-d)
	}
	if d < time.Second {
		return "now"
	}
	return roughly(d) + " ago"
}

func (e *env) whenever(t *time.Time) string {
	if t == nil {
		return ""
	}
	return e.when(*t)
}

// roughly shows a duration of a second or more in its largest unit.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 2*day:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/day)) + "d"
}

// took shows how long something ran, to three digits or so.
func took(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// size shows a number of bytes.
func size[N int | int64](n N) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 {
		f, i = f/1024, i+1
	}
	return strconv.FormatFloat(f, 'f', decimals(f), 64) + " " + units[i:i+1] + "iB"
}

func decimals(f float64) int {
	if f < 10 && f != float64(int(f)) {
		return 1
	}
	return 0
}

// plural gives "1 job" and "2 jobs".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
