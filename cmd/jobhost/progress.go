package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// progress shows on a terminal how far exec is, in one line that goes away
// again; elsewhere it does nothing. One goroutine uses it at a time.
type progress struct {
	out     io.Writer // nil = nothing is shown
	columns func() int
	now     func() time.Time
	began   time.Time
	shown   bool // the line is on the terminal

	total        int // inputs; 0 = not known
	done, failed int // failed ones are done too
}

// progressEvery is how often the line is drawn while nothing else happens.
const progressEvery = 200 * time.Millisecond

// newProgress returns the progress of a number of inputs; 0 = not known.
func newProgress(e *env, quiet bool, total int) *progress {
	p := &progress{columns: e.columns, now: e.now, began: e.now(), total: total}
	if e.stderr.terminal && !quiet && total != 1 && e.getenv("TERM") != "dumb" {
		p.out = e.stderr
	}
	return p
}

// Control sequences that all terminals but dumb ones know.
const (
	lineStart  = "\r"
	eraseToEnd = "\x1b[K"
)

// draw shows the line as it is now.
func (p *progress) draw() {
	if p.out == nil {
		return
	}
	// The last column stays free: terminals differ in when they go on to the next line.
	_, _ = io.WriteString(p.out, lineStart+p.line(p.columns()-1)+eraseToEnd)
	p.shown = true
}

// clear takes the line away, so that other output doesn't run into it.
func (p *progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.out, lineStart+eraseToEnd)
		p.shown = false
	}
}

// Bounds of the bar, in columns. With less than its minimum it is left out.
const (
	minBar = 8
	maxBar = 40
)

// line is the progress in at most so many columns: what is known of the end,
// a bar and the numbers, as far as they fit.
func (p *progress) line(columns int) string {
	counts := fmt.Sprintf("%d done", p.done)
	if p.total > 0 {
		counts = fmt.Sprintf("%d/%d", p.done, p.total)
	}
	if p.failed > 0 {
		counts += fmt.Sprintf(", %d failed", p.failed)
	}
	speed, left := p.speed()
	text := counts + speed + left
	if p.total > 0 {
		percent := fmt.Sprintf("%3d%% ", 100*p.done/p.total)
		if room := min(columns-len(percent)-1-len(text), maxBar); room >= minBar {
			full := room * p.done / p.total
			return percent + strings.Repeat("█", full) + strings.Repeat("░", room-full) + " " + text
		}
	}
	for _, shorter := range []string{text, counts + speed, counts} {
		if utf8.RuneCountInString(shorter) <= columns {
			return shorter
		}
	}
	return ""
}

// speed says how many inputs are done in a second, and how long the others will
// take; nothing before the first.
func (p *progress) speed() (speed, left string) {
	took := p.now().Sub(p.began)
	if p.done == 0 || took <= 0 {
		return "", ""
	}
	rate := float64(p.done) / took.Seconds()
	speed = fmt.Sprintf(", %.1f/s", rate)
	if rate >= 10 {
		speed = fmt.Sprintf(", %.0f/s", rate)
	}
	if p.total > 0 {
		wait := time.Duration(float64(p.total-p.done) / rate * float64(time.Second))
		left = fmt.Sprintf(", %v left", wait.Round(time.Second))
	}
	return speed, left
}
