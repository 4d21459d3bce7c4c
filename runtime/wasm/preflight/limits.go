package preflight

import (
	"cmp"
	"time"
)

// Limits limit what a module may have. A field that is 0 takes its default.
type Limits struct {
	ModuleBytes  int // of the file; 32 MiB
	MemoryPages  int // of 64 KiB, initially; 65,535, which is the maximum
	TableEntries int // initial size or maximum of all tables together; 100,000
	Locals       int // of a function, excluding parameters; 10,000
	Nesting      int // of blocks; 20,000, since Go nests as many as a function has basic blocks
	BodyBytes    int // of a function; 4 MiB
	// CompileBytes is the memory that compiling may take, as an estimate; 1 GiB. Modules that
	// may take more may also take longer to compile, in proportion.
	CompileBytes int64
	// CompileTime is the time that compiling may take, as an estimate, beyond
	// what any code of its size takes; 1 s. 1 µs per byte of code is added,
	// which large modules of real compilers need.
	CompileTime time.Duration
	// Vectors allows vectors of 128 bits; false.
	Vectors bool
}

// The largest memory is below 4 GiB, where sums of 32-bit offsets could wrap.
const maxPages = 65_535

// timePerByte is added to CompileTime.
const timePerByte = time.Microsecond

// usualBytes is the default of CompileBytes.
const usualBytes = 1 << 30

// OrDefaults returns the limits with zero values replaced by the defaults.
func (l Limits) OrDefaults() Limits {
	l.ModuleBytes = cmp.Or(l.ModuleBytes, 32<<20)
	l.MemoryPages = min(cmp.Or(l.MemoryPages, maxPages), maxPages)
	l.TableEntries = cmp.Or(l.TableEntries, 100_000)
	l.Locals = cmp.Or(l.Locals, 10_000)
	l.Nesting = cmp.Or(l.Nesting, 20_000)
	l.BodyBytes = cmp.Or(l.BodyBytes, 4<<20)
	l.CompileTime = cmp.Or(l.CompileTime, time.Second)
	l.CompileBytes = cmp.Or(l.CompileBytes, usualBytes)
	return l
}

// time is how long compiling that many bytes of code may take beyond what any code takes.
func (l *Limits) time(code int) time.Duration {
	usual := l.CompileTime + time.Duration(code)*timePerByte
	return max(usual, time.Duration(float64(usual)*float64(l.CompileBytes)/usualBytes))
}
