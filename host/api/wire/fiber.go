package wire

import (
	"cmp"
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// Names of the members of the body that starts a fiber, beside those that it
// shares with a submit.
const (
	nameInit       = "init"
	nameInitBase64 = "init_base64"
	nameRestart    = "restart"
	nameWhen       = "when"
	nameInitial    = "initial"
	nameMax        = "max"
	nameIntensity  = "intensity"
	nameWithin     = "within"
)

// FiberMembers lists the members of the body that starts a fiber; see [Members].
func FiberMembers() []Member {
	return []Member{
		{nameID, "string", "Names the fiber. Required."},
		{nameWorker, "string", "The worker of the manifest that it is of. Required."},
		{nameEntry, "string", "The export to call; left out = the worker's."},
		{nameInit, "", "What the guest finds as its input, up to 1 MiB: the text of a string, or the JSON text of any other value."},
		{nameInitBase64, "string", "That as base64, for bytes that are no text; not together with init."},
		{nameLabels, "object", "Texts by name, for people."},
		{nameRestart, "object", `When it is started again: when ("never", "on_failure" or "always"), initial, max, intensity and within.`},
	}
}

// DecodeFiber reads the body that starts a fiber, as [Decoder.Decode] reads that of
// a submit. What the spec says is not checked, see [jobhost.FiberSpec.Check].
func (d *Decoder) DecodeFiber(body []byte) (spec jobhost.FiberSpec, err error) {
	given := false
	err = d.document(body, oneObject, func(key []byte) (err error) {
		switch name := string(key); name {
		case nameID:
			spec.ID, err = d.text(name)
		case nameWorker:
			spec.Worker, err = d.text(name)
		case nameEntry:
			spec.Entry, err = d.text(name)
		case nameInit, nameInitBase64:
			if given {
				return jobhost.Invalid(name, "", "init and init_base64 are both set")
			}
			given = true
			spec.Init, _, err = d.content(name, name == nameInitBase64)
		case nameLabels:
			spec.Labels, err = d.labels()
		case nameRestart:
			spec.Restart, err = d.restart()
		default:
			err = Unknown("member", name, names(FiberMembers()))
		}
		return err
	})
	return spec, err
}

func (d *Decoder) restart() (p jobhost.RestartPolicy, err error) {
	err = d.object(func(key []byte) (err error) {
		var length time.Duration
		name := string(key)
		field := nameRestart + "." + name
		switch name {
		case nameWhen:
			var text string
			text, err = d.text(field)
			p.When = jobhost.RestartWhen(text)
		case nameInitial:
			length, err = d.duration(field)
			p.Initial = jobhost.Duration(length)
		case nameMax:
			length, err = d.duration(field)
			p.Max = jobhost.Duration(length)
		case nameIntensity:
			p.Intensity, err = d.number(field)
		case nameWithin:
			length, err = d.duration(field)
			p.Within = jobhost.Duration(length)
		default:
			err = Unknown("member of restart", name, []string{nameWhen, nameInitial, nameMax, nameIntensity, nameWithin})
		}
		return err
	}, nameRestart)
	return p, err
}

// AppendFiber appends the body that starts a fiber. Decoding it gives an equal spec,
// unless texts of it are not valid UTF-8.
func AppendFiber(b []byte, spec *jobhost.FiberSpec) []byte {
	b = appendText(append(b, `{"id":`...), spec.ID)
	b = appendMember(b, nameWorker, spec.Worker)
	b = appendMember(b, nameEntry, spec.Entry)
	b = appendContent(b, nameInit, nameInitBase64, spec.Init)
	b = appendLabels(b, spec.Labels)
	if r := &spec.Restart; *r != (jobhost.RestartPolicy{}) {
		b = appendText(append(appendName(b, nameRestart), `{"when":`...), cmp.Or(r.When, jobhost.RestartNever))
		for _, m := range []struct {
			name   string
			length jobhost.Duration
		}{{nameInitial, r.Initial}, {nameMax, r.Max}, {nameWithin, r.Within}} {
			if m.length != 0 {
				b = appendMember(b, m.name, m.length.String())
			}
		}
		b = append(appendNumber(b, nameIntensity, r.Intensity), '}')
	}
	return append(b, '}')
}

// appendContent writes bytes as text or as base64, whichever is shorter.
func appendContent(b []byte, name, nameBase64 string, data []byte) []byte {
	size := base64.StdEncoding.EncodedLen(len(data))
	switch {
	case len(data) == 0:
		return b
	case utf8.Valid(data) && quotedLen(data) <= size:
		return appendText(appendName(b, name), data)
	}
	b = append(appendName(b, nameBase64), '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// content is bytes for JSON: text if they are valid UTF-8, base64 otherwise.
func content(data []byte) (*string, []byte) {
	if !utf8.Valid(data) {
		return nil, data
	}
	text := string(data)
	return &text, nil
}

// Fiber is a fiber, with its result as text if it is one.
type Fiber struct {
	jobhost.Fiber
	// Text is the result, if that is valid UTF-8, Base64 otherwise; neither when
	// there is none.
	Text   *string `json:"result,omitempty"`
	Base64 []byte  `json:"result_base64,omitempty"`
}

// NewFiber returns a fiber for JSON.
func NewFiber(f jobhost.Fiber) Fiber {
	w := Fiber{Fiber: f}
	if f.Status == jobhost.FiberCompleted {
		w.Text, w.Base64 = content(f.Result)
	}
	w.Result = nil
	return w
}

// Value returns the fiber.
func (f *Fiber) Value() jobhost.Fiber {
	known := f.Fiber
	if known.Result = f.Base64; f.Text != nil {
		known.Result = []byte(*f.Text)
	}
	return known
}

// FiberPage is a page of fibers.
type FiberPage struct {
	Fibers []Fiber `json:"fibers"`
	// Next is the cursor of the page that follows; empty on the last one.
	Next string `json:"next,omitempty"`
}

// FiberOutput is something that a fiber published. Either Text or Base64 is set.
type FiberOutput struct {
	Seq    uint64    `json:"seq"`
	Time   time.Time `json:"time"`
	Text   *string   `json:"data,omitempty"`
	Base64 []byte    `json:"data_base64,omitempty"`
}

// NewFiberOutput returns an output for JSON.
func NewFiberOutput(o jobhost.FiberOutput) FiberOutput {
	w := FiberOutput{Seq: o.Seq, Time: o.Time}
	w.Text, w.Base64 = content(o.Data)
	return w
}

// Value returns the output.
func (o *FiberOutput) Value() jobhost.FiberOutput {
	known := jobhost.FiberOutput{Seq: o.Seq, Time: o.Time, Data: o.Base64}
	if o.Text != nil {
		known.Data = []byte(*o.Text)
	}
	return known
}
