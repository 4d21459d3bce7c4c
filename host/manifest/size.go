package manifest

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// Size is a number of bytes that reads and writes as text with a unit, such
// as "64MiB".
type Size int64

// units are those of [ParseSize], the largest first.
var units = [...]struct {
	name  string
	bytes Size
}{
	{"TiB", 1 << 40},
	{"TB", 1e12},
	{"GiB", 1 << 30},
	{"GB", 1e9},
	{"MiB", 1 << 20},
	{"MB", 1e6},
	{"KiB", 1 << 10},
	{"kB", 1e3},
	{"KB", 1e3},
	{"B", 1},
}

// ParseSize reads a whole number and its unit: B, KiB, MiB, GiB, TiB in powers
// of 1024, or kB (also KB), MB, GB, TB in powers of 1000. Units are read as
// they are written here, since "Mb" is something else.
func ParseSize(written string) (Size, error) {
	digits := strings.TrimLeft(written, "0123456789")
	number, unit := written[:len(written)-len(digits)], digits
	for _, u := range units {
		if u.name != unit || number == "" {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if errors.Is(err, strconv.ErrRange) || n > math.MaxInt64/int64(u.bytes) {
			return 0, wrong("", "%s is more bytes than can be counted", text.Quote(written, text.Short))
		}
		return Size(n) * u.bytes, nil
	}
	return 0, &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Message: text.Quote(written, text.Short) + " is not a size",
		Hint:    `write a whole number with a unit, such as "512KiB", "64MiB" or "1GB"`,
	}
}

// String returns the size in the largest unit that gives a whole number:
// "64MiB", "1MB", "1000001B".
func (s Size) String() string {
	for _, u := range units {
		if s >= u.bytes && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
