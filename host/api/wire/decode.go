package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/jsondepth"
)

// MaxDepth is how deep values may be nested in a body.
const MaxDepth = 64

// Decoder reads bodies of submits, strictly: names that are unknown, doubled
// or written in another case, a second document, a byte order mark, invalid
// UTF-8 and lone surrogates, and nesting beyond [MaxDepth] are errors. It is
// for one goroutine at a time and reuses its memory.
type Decoder struct {
	buf     bytes.Buffer
	json    jsontext.Decoder
	scratch []byte
	// maxPayload is in bytes.
	maxPayload int
}

// NewDecoder returns a decoder of jobs with up to maxPayload bytes of payload.
func NewDecoder(maxPayload int) *Decoder { return &Decoder{maxPayload: maxPayload} }

// Decode reads one body. The spec keeps nothing of it. What the spec says is
// not checked, see [jobhost.Spec.Check]. Errors: invalid with the offset or
// the field, too_large for the payload.
func (d *Decoder) Decode(body []byte) (jobhost.Spec, error) {
	var s submit
	err := d.document(body, "send one JSON object; many jobs go to /v1/jobs:batch, one per line", func(name []byte) error { return d.member(&s, name) })
	if err != nil {
		return jobhost.Spec{}, err
	}
	if s.json && s.spec.ContentType == "" {
		s.spec.ContentType = JSON
	}
	return s.spec, nil
}

// document reads a body that is one object, and calls member for each of its
// names, to read the value. hint is what to do about more than one.
func (d *Decoder) document(body []byte, hint string, member func(name []byte) error) error {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return jobhost.Invalid("", "send UTF-8 without it", "the body begins with a byte order mark")
	}
	d.buf = *bytes.NewBuffer(body)
	d.json.Reset(&d.buf)
	defer func() { d.buf = bytes.Buffer{} }()
	if err := d.object(member, "the body"); err != nil {
		return err
	}
	end := d.json.InputOffset()
	if _, err := d.json.ReadToken(); err != io.EOF {
		return jobhost.Invalid("", hint, "there is more after the end of the object at byte %d", end)
	}
	return nil
}

// submit is a spec in the making.
type submit struct {
	spec    jobhost.Spec
	payload bool // was given
	json    bool // the payload is a JSON value
}

// object reads an object and calls member for each of its names, to read the value.
func (d *Decoder) object(member func(name []byte) error, what string) error {
	if d.json.PeekKind() != jsontext.KindBeginObject {
		return d.unexpected(what, "an object")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return syntax(err)
	}
	for d.json.PeekKind() != jsontext.KindEndObject {
		raw, err := d.json.ReadValue()
		if err != nil {
			return syntax(err)
		}
		name, err := jsontext.AppendUnquote(d.scratch[:0], []byte(raw))
		if err != nil {
			return syntax(err)
		}
		d.scratch = name
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	return syntax(err)
}

func (d *Decoder) member(s *submit, key []byte) (err error) {
	spec := &s.spec
	switch string(key) {
	case nameWorker:
		spec.Worker, err = d.text(nameWorker)
	case nameID:
		spec.ID, err = d.text(nameID)
	case namePayload:
		err = d.payload(s, namePayload)
	case namePayloadBase64:
		err = d.payload(s, namePayloadBase64)
	case namePayloadRef:
		spec.PayloadRef, err = d.text(namePayloadRef)
	case nameContentType:
		spec.ContentType, err = d.text(nameContentType)
	case nameEntry:
		spec.Entry, err = d.text(nameEntry)
	case namePriority:
		err = d.priority(&spec.Priority)
	case nameDelay:
		spec.Delay, err = d.duration(nameDelay)
	case nameRunAt:
		spec.RunAt, err = d.time(nameRunAt)
	case nameTasks:
		spec.Tasks, err = d.number(nameTasks)
	case nameMaxAttempts:
		spec.MaxAttempts, err = d.number(nameMaxAttempts)
	case nameTimeout:
		spec.Timeout, err = d.duration(nameTimeout)
	case nameConcurrencyKey:
		spec.ConcurrencyKey, err = d.text(nameConcurrencyKey)
	case nameDeadline:
		spec.Deadline, err = d.duration(nameDeadline)
	case nameUniqueKey:
		spec.UniqueKey, err = d.text(nameUniqueKey)
	case nameUniqueFor:
		spec.UniqueFor, err = d.duration(nameUniqueFor)
	case nameCallback:
		spec.Callback, err = d.callback()
	case nameRetention:
		spec.Retention, err = d.duration(nameRetention)
	case nameLabels:
		spec.Labels, err = d.labels()
	default:
		return Unknown("member", string(key), memberNames())
	}
	return err
}

// payload reads either form of the payload.
func (d *Decoder) payload(s *submit, name string) (err error) {
	if s.payload {
		return jobhost.Invalid(name, "", "payload and payload_base64 are both set")
	}
	s.payload = true
	s.spec.Payload, s.json, err = d.content(name, name == namePayloadBase64)
	if size := len(s.spec.Payload); err == nil && size > d.maxPayload {
		return &jobhost.Error{
			Code: jobhost.CodeTooLarge, Field: name,
			Message: fmt.Sprintf("the payload of %d bytes is larger than %d", size, d.maxPayload),
			Hint:    "upload it first: POST /v1/payloads, jobhost submit --file; or raise max_payload in the manifest",
		}
	}
	return err
}

// content reads bytes: those of a string in base64, or the text of a string, or
// the JSON text of any other value.
func (d *Decoder) content(name string, isBase64 bool) (data []byte, isJSON bool, err error) {
	raw, err := d.json.ReadValue()
	if err != nil {
		return nil, false, syntax(err)
	}
	switch kind := raw.Kind(); {
	case isBase64 && kind != jsontext.KindString:
		return nil, false, wrongKind(name, "a string", kind)
	case isBase64:
		data, err = decodeBase64(name, raw)
	case kind == jsontext.KindString:
		data, err = jsontext.AppendUnquote(make([]byte, 0, len(raw)), []byte(raw))
	default:
		if at := jsondepth.Exceeds(raw, MaxDepth-1); at >= 0 {
			return nil, false, jobhost.Invalid(name, "", "nested more than %d deep at byte %d", MaxDepth, d.json.InputOffset()-int64(len(raw)-at))
		}
		return bytes.Clone(raw), true, nil
	}
	return data, false, err
}

// decodeBase64 reads a quoted string without copying it first.
func decodeBase64(name string, raw []byte) ([]byte, error) {
	text := raw[1 : len(raw)-1]
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(data, text)
	if err != nil {
		return nil, &jobhost.Error{
			Code: jobhost.CodeInvalid, Field: name, Cause: err,
			Message: name + " is not base64",
			Hint:    "use the standard alphabet (+ and /) with padding",
		}
	}
	return data[:n], nil
}
