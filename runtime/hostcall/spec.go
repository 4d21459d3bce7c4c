package hostcall

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// maxHeadBytes bounds what precedes the payload of a job.
const maxHeadBytes = 64 << 10

// ParseSpec parses the description of a job as a guest writes it: a line for
// each option, an empty line, and the payload as it is.
//
//	worker: resize
//	priority: high
//	label.customer: 7
//
//	{"picture": "a.png"}
//
// The options are those of a submit: worker, id, content_type, entry, priority,
// delay (a duration), run_at (RFC 3339), tasks, max_attempts, timeout (a
// duration), and label.NAME. Without an empty line there is no payload. White
// space around a value is ignored. Unknown and repeated options are errors; the
// values are validated by [jobhost.Spec.Check]. The payload is a slice of form.
func ParseSpec(form []byte) (jobhost.Spec, error) {
	var spec jobhost.Spec
	seen := map[string]bool{}
	for rest := form; len(rest) > 0; {
		line, after, more := bytes.Cut(rest, []byte{'\n'})
		if len(line) == 0 && more {
			spec.Payload = after
			return spec, nil
		}
		rest = after
		if len(form)-len(rest) > maxHeadBytes || !utf8.Valid(line) {
			return spec, badSpec("", "the lines before the payload are longer than %d bytes, or not UTF-8", maxHeadBytes)
		}
		name, value, ok := strings.Cut(string(line), ":")
		switch {
		case !ok:
			return spec, badSpec("", "a line of the job is no option: it has no colon; the payload comes after an empty line")
		case seen[name]:
			return spec, badSpec(name, "%s is given twice", text.Line(name, 64))
		}
		seen[name] = true
		if err := setOption(&spec, name, strings.TrimSpace(value)); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

func badSpec(field, format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Field: text.Line(field, 64), Message: fmt.Sprintf(format, args...)}
}

func setOption(spec *jobhost.Spec, name, value string) (err error) {
	if label, ok := strings.CutPrefix(name, "label."); ok {
		if spec.Labels == nil {
			spec.Labels = map[string]string{}
		}
		spec.Labels[label] = value
		return nil
	}
	switch name {
	case "worker":
		spec.Worker = value
	case "id":
		spec.ID = value
	case "content_type":
		spec.ContentType = value
	case "entry":
		spec.Entry = value
	case "priority":
		spec.Priority, err = jobhost.ParsePriority(value)
	case "delay":
		err = setDuration(&spec.Delay, name, value)
	case "timeout":
		err = setDuration(&spec.Timeout, name, value)
	case "run_at":
		if spec.RunAt, err = time.Parse(time.RFC3339, value); err != nil {
			err = badSpec(name, "run_at is not a time as in RFC 3339")
		}
	case "tasks":
		err = setNumber(&spec.Tasks, name, value)
	case "max_attempts":
		err = setNumber(&spec.MaxAttempts, name, value)
	default:
		err = badSpec(name, "%s is not an option of a job", text.Line(name, 64))
	}
	return err
}

func setDuration(d *time.Duration, name, value string) error {
	parsed, err := jobhost.ParseDuration(value)
	if err != nil {
		return badSpec(name, "%s: %v", name, err)
	}
	*d = time.Duration(parsed)
	return nil
}

func setNumber(n *int, name, value string) error {
	parsed, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return badSpec(name, "%s is not a whole number", name)
	}
	*n = int(parsed)
	return nil
}
