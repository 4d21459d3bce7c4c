package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressBar shows on a terminal how far exec is; elsewhere it does nothing.
type progressBar struct{ bar *progressbar.ProgressBar }

// newProgressBar returns a bar for a number of inputs; 0 = not known.
func newProgressBar(e *env, quiet bool, total int) *progressBar {
	if quiet || !e.stderr.terminal || total == 1 {
		return &progressBar{}
	}
	if total == 0 {
		total = -1 // a spinner
	}
	return &progressBar{bar: progressbar.NewOptions(total,
		progressbar.OptionSetWriter(e.stderr),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// clear takes the bar away, so that other output doesn't run into it.
func (p *progressBar) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// step notes that one input is done.
func (p *progressBar) step() {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

// finish takes the bar away for good.
func (p *progressBar) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
