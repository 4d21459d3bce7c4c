package wire

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

func (d *Decoder) text(name string) (string, error) {
	if d.json.PeekKind() != jsontext.KindString {
		return "", d.unexpected(name, "a string")
	}
	token, err := d.json.ReadToken()
	if err != nil {
		return "", syntax(err)
	}
	return token.String(), nil
}

func (d *Decoder) number(name string) (int, error) {
	if d.json.PeekKind() != jsontext.KindNumber {
		return 0, d.unexpected(name, "a whole number")
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		return 0, syntax(err)
	}
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil {
		return 0, jobhost.Invalid(name, "", "%s is not a whole number in range", name)
	}
	return int(n), nil
}

func (d *Decoder) flag(name string) (bool, error) {
	if kind := d.json.PeekKind(); kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		return false, d.unexpected(name, "true or false")
	}
	token, err := d.json.ReadToken()
	if err != nil {
		return false, syntax(err)
	}
	return token.Bool(), nil
}

func (d *Decoder) duration(name string) (time.Duration, error) {
	text, err := d.text(name)
	if err != nil {
		return 0, err
	}
	v, err := jobhost.ParseDuration(text)
	if err != nil {
		return 0, jobhost.Invalid(name, jobhost.HintOf(err), "%s: %v", name, err)
	}
	return time.Duration(v), nil
}

func (d *Decoder) time(name string) (time.Time, error) {
	text, err := d.text(name)
	if err != nil {
		return time.Time{}, err
	}
	return ParseTime(name, text)
}

// ParseTime reads a time as RFC 3339.
func ParseTime(name, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, jobhost.Invalid(name, `write it as in "2030-01-31T08:00:00Z"`, "%s is not a time of RFC 3339", name)
	}
	return t, nil
}

func (d *Decoder) priority(p *jobhost.Priority) error {
	text, err := d.text(namePriority)
	if err != nil {
		return err
	}
	*p, err = jobhost.ParsePriority(text)
	return err
}

func (d *Decoder) labels() (map[string]string, error) {
	labels := map[string]string{}
	err := d.object(func(key []byte) error {
		name := string(key)
		if len(labels) >= jobhost.MaxLabels {
			return jobhost.Invalid(nameLabels, "", "there are more than %d labels", jobhost.MaxLabels)
		}
		value, err := d.text(nameLabels)
		labels[name] = value
		return err
	}, nameLabels)
	return labels, err
}

func (d *Decoder) callback() (c jobhost.Callback, err error) {
	err = d.object(func(key []byte) (err error) {
		switch name := string(key); name {
		case nameWorker:
			c.Worker, err = d.text(nameCallback)
		case nameURL:
			c.URL, err = d.text(nameCallback)
		default:
			err = Unknown("member of callback", name, []string{nameWorker, nameURL})
		}
		return err
	}, nameCallback)
	if err == nil && c == (jobhost.Callback{}) {
		err = jobhost.Invalid(nameCallback, `write {"worker":"notify"} or {"url":"https://example.com/hook"}`, "callback names neither a worker nor a URL")
	}
	return c, err
}

// unexpected says that the next value is not what it should be.
func (d *Decoder) unexpected(what, want string) error {
	kind := d.json.PeekKind()
	if kind == jsontext.KindInvalid {
		_, err := d.json.ReadToken()
		return syntax(err)
	}
	return wrongKind(what, want, kind)
}

func wrongKind(what, want string, kind jsontext.Kind) error {
	field := what
	if strings.ContainsRune(what, ' ') {
		field = "" // it is about the body
	}
	return jobhost.Invalid(field, "", "%s is %s, not %s", what, kindNames[kind], want)
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindFalse: "false", jsontext.KindTrue: "true",
	jsontext.KindString: "a string", jsontext.KindNumber: "a number",
	jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

// syntax turns an error of the JSON reader into one for people.
func syntax(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		field := text.Clip(strings.Join(slices.Collect(e.JSONPointer.Tokens()), "."), 80)
		return jobhost.Invalid(field, "", "invalid JSON at byte %d: %s", e.ByteOffset, text.Clip(strings.TrimPrefix(e.Err.Error(), "jsontext: "), 80))
	}
	if errors.Is(err, io.EOF) {
		return jobhost.Invalid("", "", "the body is empty")
	}
	return jobhost.Invalid("", "", "invalid JSON: the body ends too early")
}
