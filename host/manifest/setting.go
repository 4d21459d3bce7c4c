package manifest

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// setting ties a key of the manifest to the place that holds its value.
type setting struct {
	// set checks what the TOML library read and stores it; after an error the
	// value is what it was. The errors continue the name of the setting, see [wrong].
	set func(v any) error
	// show returns the value as TOML; "" = leave it out.
	show func() string
}

// mismatch is the error for a value of the wrong type.
func mismatch(v any, hint string) error {
	return wrong(hint, "%s is not possible here", typeName(v))
}

// typeName names the kind of a TOML value in messages.
func typeName(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "a list of tables"
	case []any:
		return "a list"
	}
	return fmt.Sprintf("a %T", v)
}

// quote writes a TOML string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// parsed is a setting that stands as text in the manifest.
func parsed(example string, parse func(string) error, show func() string) setting {
	return setting{
		set: func(v any) error {
			s, ok := v.(string)
			if !ok {
				return mismatch(v, "write text in quotes, such as "+quote(example))
			}
			return parse(s)
		},
		show: func() string {
			if s := show(); s != "" {
				return quote(s)
			}
			return ""
		},
	}
}

func textual(p *string, example string, check func(string) error) setting {
	return parsed(example,
		func(s string) error {
			err := check(s)
			if err == nil {
				*p = s
			}
			return err
		},
		func() string { return *p })
}

func oneOf[S ~string](p *S, names ...S) setting {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return parsed(list[0],
		func(s string) error {
			for _, n := range names {
				if s == string(n) {
					*p = n
					return nil
				}
			}
			return wrong("use "+quoteList(list), "%s is not possible here", text.Quote(s, text.Short))
		},
		func() string { return string(*p) })
}

// quoteList gives `"a", "b" or "c"`.
func quoteList(names []string) string {
	var b strings.Builder
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(quote(n))
	}
	return b.String()
}

func size[N int | int64](p *N, low, high Size) setting {
	return parsed("64MiB",
		func(s string) error {
			n, err := ParseSize(s)
			switch {
			case err != nil:
				return err
			case n < low || n > high:
				return wrong("", "%v is not between %v and %v", n, low, high)
			}
			*p = N(n)
			return nil
		},
		func() string {
			if *p == 0 && low > 0 { // it is settled later
				return ""
			}
			return Size(*p).String()
		})
}

func duration(p *time.Duration, low, high time.Duration) setting {
	return parsed("30s",
		func(s string) error {
			d, err := jobhost.ParseDuration(s)
			switch t := time.Duration(d); {
			case err != nil:
				return err
			case t < low || t > high:
				return wrong("", "%v is not between %v and %v", d, jobhost.Duration(low), jobhost.Duration(high))
			}
			*p = time.Duration(d)
			return nil
		},
		func() string { return jobhost.Duration(*p).String() })
}

// durationOr is a duration that can be switched off with a word, which is 0.
func durationOr(off string, p *time.Duration, low, high time.Duration) setting {
	d := duration(p, low, high)
	return setting{
		set: func(v any) error {
			if v == off {
				*p = 0
				return nil
			}
			return d.set(v)
		},
		show: func() string {
			if *p == 0 {
				return quote(off)
			}
			return d.show()
		},
	}
}

func whole[N int | int64](p *N, low, high N) setting {
	return setting{
		set: func(v any) error {
			n, ok := v.(int64)
			if !ok {
				return mismatch(v, "write a whole number without quotes")
			}
			if n < int64(low) || n > int64(high) {
				return wrong("", "%d is not between %d and %d", n, low, high)
			}
			*p = N(n)
			return nil
		},
		show: func() string { return strconv.FormatInt(int64(*p), 10) },
	}
}

// wholeOrLeft is a whole number from 1 on that is left out when it is 0, and settled later.
func wholeOrLeft(p *int, high int) setting {
	n := whole(p, 1, high)
	return setting{set: n.set, show: func() string {
		if *p == 0 {
			return ""
		}
		return n.show()
	}}
}

func rate(p *jobhost.Rate) setting {
	return parsed("100/s",
		func(s string) error {
			r, err := jobhost.ParseRate(s)
			if err != nil {
				return wrong(jobhost.HintOf(err), "%v", err)
			}
			*p = r
			return nil
		},
		func() string { return p.String() })
}

func number(p *float64) setting {
	return setting{
		set: func(v any) error {
			switch n := v.(type) {
			case int64:
				*p = float64(n)
			case float64:
				*p = n
			default:
				return mismatch(v, "write a number without quotes")
			}
			return nil
		},
		show: func() string { return strconv.FormatFloat(*p, 'g', -1, 64) },
	}
}

func boolean(p *bool) setting {
	return setting{
		set: func(v any) error {
			b, ok := v.(bool)
			if !ok {
				return mismatch(v, "write true or false without quotes")
			}
			*p = b
			return nil
		},
		show: func() string { return strconv.FormatBool(*p) },
	}
}

func texts(p *[]string, most int, check func(string) (string, error)) setting {
	return setting{
		set: func(v any) error {
			list, ok := v.([]any)
			if !ok {
				return mismatch(v, `write a list of texts, such as ["a", "b"]`)
			}
			if len(list) > most {
				return wrong("", "%d entries are more than %d", len(list), most)
			}
			for _, e := range list {
				s, ok := e.(string)
				if !ok {
					return mismatch(e, "put each entry in quotes")
				}
				s, err := check(s)
				if err != nil {
					return err
				}
				*p = append(*p, s)
			}
			return nil
		},
		show: func() string {
			quoted := make([]string, len(*p))
			for i, s := range *p {
				quoted[i] = quote(s)
			}
			return "[" + strings.Join(quoted, ", ") + "]"
		},
	}
}

func logLevel(p *slog.Level) setting {
	name := strings.ToLower(p.String())
	s := oneOf(&name, "debug", "info", "warn", "error")
	return setting{
		set: func(v any) error {
			if err := s.set(v); err != nil {
				return err
			}
			return p.UnmarshalText([]byte(name))
		},
		show: func() string { return quote(strings.ToLower(p.String())) },
	}
}
