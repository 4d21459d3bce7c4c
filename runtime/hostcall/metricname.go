package hostcall

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// Bounds of a metric's name.
const (
	MaxMetricBytes      = 2048 // of the whole text
	MaxMetricNameBytes  = 64   // of a name, including those of labels
	MaxMetricLabels     = 8
	MaxMetricValueBytes = 128 // of a label's value
)

// MetricName is the name that a guest gives a metric: a name and labels, sorted
// by their names.
type MetricName struct {
	Name   string
	Labels []MetricLabel
}

// MetricLabel is a label of a metric.
type MetricLabel struct{ Name, Value string }

// String returns the canonical form of the name, which [ParseMetric] reads
// back.
func (m MetricName) String() string {
	if len(m.Labels) == 0 {
		return m.Name
	}
	var b strings.Builder
	b.WriteString(m.Name)
	for i, l := range m.Labels {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(l.Name)
		b.WriteString(`="`)
		_, _ = labelEscaper.WriteString(&b, l.Value)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// ParseMetric parses a metric's name as Prometheus writes it:
//
//	requests
//	requests{code="200",path="a \"b\" \\ c"}
//
// Names consist of letters, digits and underscores and don't begin with a
// digit; labels don't begin with two underscores and are not worker, le or
// quantile, which belong to the host. Values are UTF-8 with the escapes \\, \"
// and \n. There are no spaces outside values. Errors have code
// [jobhost.CodeInvalid].
func ParseMetric(text string) (MetricName, error) {
	if len(text) > MaxMetricBytes {
		return MetricName{}, badMetric("a name of %d bytes is longer than %d", len(text), MaxMetricBytes)
	}
	name, labels, braces := strings.Cut(text, "{")
	m := MetricName{Name: name}
	if !metricWord(name) {
		return MetricName{}, badMetric("%.80q is not a name for a metric", name)
	}
	if !braces || labels == "}" {
		return m, nil
	}
	for more := true; more; {
		if len(m.Labels) == MaxMetricLabels {
			return MetricName{}, badMetric("there are more than %d labels", MaxMetricLabels)
		}
		var label MetricLabel
		var err error
		if label, labels, err = parseLabel(labels); err != nil {
			return MetricName{}, err
		}
		m.Labels = append(m.Labels, label)
		labels, more = strings.CutPrefix(labels, ",")
	}
	if labels != "}" {
		return MetricName{}, badMetric("the labels end with %.80q instead of a brace", labels)
	}
	return m, m.sort()
}

// sort sorts the labels and reports duplicates.
func (m *MetricName) sort() error {
	slices.SortFunc(m.Labels, func(a, b MetricLabel) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(m.Labels); i++ {
		if m.Labels[i].Name == m.Labels[i-1].Name {
			return badMetric("label %s is there twice", m.Labels[i].Name)
		}
	}
	return nil
}

// parseLabel parses name="value" at the beginning of text and returns the rest.
func parseLabel(text string) (label MetricLabel, rest string, err error) {
	name, rest, ok := strings.Cut(text, `="`)
	if !ok || !metricWord(name) {
		return label, "", badMetric("%.80q is not a label", text)
	}
	if strings.HasPrefix(name, "__") || name == "worker" || name == "le" || name == "quantile" {
		return label, "", badMetric("label %s belongs to the host", name)
	}
	value, rest, err := parseValue(rest)
	return MetricLabel{Name: name, Value: value}, rest, err
}

// parseValue reads up to the closing quote and returns what follows it.
func parseValue(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			if value = b.String(); !utf8.ValidString(value) {
				return "", "", badMetric("value %.80q is not valid UTF-8", value)
			}
			return value, text[i+1:], nil
		}
		if c == '\\' {
			if i++; i == len(text) {
				break
			}
			if c = text[i]; c == 'n' {
				c = '\n'
			} else if c != '\\' && c != '"' {
				return "", "", badMetric(`\%c is not an escape`, c)
			}
		}
		if b.Len() == MaxMetricValueBytes {
			return "", "", badMetric("a value is longer than %d bytes", MaxMetricValueBytes)
		}
		b.WriteByte(c)
	}
	return "", "", badMetric("a value has no closing quote")
}

func metricWord(s string) bool {
	if s == "" || len(s) > MaxMetricNameBytes || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

func badMetric(format string, args ...any) error {
	return &jobhost.Error{
		Code:    jobhost.CodeInvalid,
		Field:   "metric",
		Message: fmt.Sprintf(format, args...),
		Hint:    `write it like requests or requests{code="200"}`,
	}
}
