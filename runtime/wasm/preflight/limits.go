package preflight

import (
	"cmp"
	"time"
)

// Limits bound what a module may have. A field that is 0 takes its default.
type Limits struct {
	ModuleBytes  int // of the file; 32 MiB
	MemoryPages  int // of 64 KiB, at the start; 65,535, which is the most there can be
	TableEntries int // that tables have at the start or can grow to, all together; 100,000
	Locals       int // of a function, parameters left out; 10,000
	Nesting      int // of blocks; 20,000, of which Go needs as many as a function has basic blocks
	BodyBytes    int // of a function; 4 MiB
	// CompileBytes is what compiling may take of memory, as an estimate; 1 GiB.
	// Modules that may have more may take longer to compile, in proportion.
	CompileBytes int64
	// CompileTime is what compiling may take, as an estimate, beyond what any
	// code of its size takes; 1 s. 1 µs for each byte of code is
	// added to it, which large modules of real compilers need.
	CompileTime time.Duration
	// Vectors says that it may use vectors of 128 bits; false.
	Vectors bool
}

// The largest memory is below 4 GiB, where sums of 32-bit offsets could wrap.
const maxPages = 65_535

// timePerByte is granted over CompileTime.
const timePerByte = time.Microsecond

// usualBytes is the default of CompileBytes.
const usualBytes = 1 << 30

// OrDefaults returns the limits with defaults for what is 0.
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

// time is what compiling so many bytes of code may take beyond what any code takes.
func (l *Limits) time(code int) time.Duration {
	usual := l.CompileTime + time.Duration(code)*timePerByte
	return max(usual, time.Duration(float64(usual)*float64(l.CompileBytes)/usualBytes))
}
