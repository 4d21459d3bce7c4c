package preflight

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// Estimate is the expected cost of compiling a module.
type Estimate struct {
	// Bytes is the memory in use at one time.
	Bytes int64
	// Time is the time beyond what any code of its size takes.
	Time time.Duration

	largest, slowest part // the largest contributions
}

// part is the largest contribution to an estimate.
type part struct {
	what     string
	function int // index of a function; −1 = it isn't one of a function
	bytes    int64
	time     time.Duration
}

func (p *part) String() string {
	if p.function < 0 {
		return p.what
	}
	return fmt.Sprintf("%s, in function %d", p.what, p.function)
}

// Products of a hostile module don't fit into 64 bits. Beyond these limits nothing is accepted.
const (
	maxUnits = 1_000_000_000_000
	maxTime  = 1000 * time.Hour
	maxBytes = 1 << 50
)

// estimated sums terms, which are those of a function, or of the module if function is −1.
func estimated(function int, terms []term) Estimate {
	var e Estimate
	for _, t := range terms {
		units := min(t.units, maxUnits)
		p := part{what: t.what, function: function, bytes: int64(units) * int64(t.bytes), time: time.Duration(units) * t.time}
		e.add(Estimate{Bytes: p.bytes, Time: p.time, largest: p, slowest: p})
	}
	return e
}

// add combines the estimate with that of something else that is compiled.
func (e *Estimate) add(other Estimate) {
	e.Bytes = min(e.Bytes+other.Bytes, maxBytes)
	e.Time = min(e.Time+other.Time, maxTime)
	if other.largest.bytes > e.largest.bytes {
		e.largest = other.largest
	}
	if other.slowest.time > e.slowest.time {
		e.slowest = other.slowest
	}
}

// next adds a function that is compiled after the previous ones: their memory is reused.
func (e *Estimate) next(f Estimate) {
	if f.Bytes > e.Bytes {
		e.Bytes, e.largest = f.Bytes, f.largest
	}
	f.Bytes, f.largest = 0, part{}
	e.add(f)
}

// Worse returns the estimate for what is compiled in one of two forms.
func (e *Estimate) Worse(other Estimate) Estimate {
	if other.Bytes < e.Bytes {
		other.Bytes, other.largest = e.Bytes, e.largest
	}
	if other.Time < e.Time {
		other.Time, other.slowest = e.Time, e.slowest
	}
	return other
}

// MaxCompileBytes is the upper bound of [Limits.CompileBytes].
const MaxCompileBytes = 16 << 30

// Need returns the [Limits.CompileBytes] with which a module would be accepted;
// code is its number of bytes of code before it was rewritten.
func (e *Estimate) Need(code int) int64 {
	usual := (&Limits{CompileBytes: usualBytes}).OrDefaults()
	need := e.Bytes
	if most := usual.time(code); e.Time > most {
		need = max(need, int64(float64(e.Time)/float64(most)*usualBytes)+1)
	}
	const step = 256 << 20
	return (need + step - 1) / step * step
}

// Within compares the estimate with the limits of a module with that many bytes of code.
func (e *Estimate) Within(limits Limits, code int) error {
	l := limits.OrDefaults()
	most := l.time(code)
	if e.Bytes <= l.CompileBytes && e.Time <= most {
		return nil
	}
	refused := &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: "compile_memory",
		Hint: fmt.Sprintf("set compile_memory = %q for the worker, if you trust it with that", sizeText(e.Need(code))),
	}
	if e.Need(code) > MaxCompileBytes {
		refused.Hint = "build it with optimisation, or split up what is large"
	}
	if e.Bytes > l.CompileBytes {
		refused.Message = fmt.Sprintf("would take the compiler about %s of memory, more than its compile_memory of %s; mostly because of %s",
			sizeText(e.Bytes), sizeText(l.CompileBytes), &e.largest)
	} else {
		refused.Message = fmt.Sprintf("would take the compiler %s or so longer than usual for its size, more than the %s of a compile_memory of %s; mostly because of %s",
			e.Time.Round(100*time.Millisecond), most.Round(100*time.Millisecond), sizeText(l.CompileBytes), &e.slowest)
	}
	return refused
}

// sizeText formats a size as manifests do.
func sizeText(n int64) string {
	if n >= 1<<30 && n%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", n>>30)
	}
	return fmt.Sprintf("%dMiB", (n+1<<20-1)>>20)
}
