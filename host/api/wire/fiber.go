package wire

import (
	"cmp"
	"encoding/base64"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/jobhost/jobhost"
)

// fiberBody is the body that starts a fiber.
type fiberBody struct {
	ID         str                 `json:"id" type:"string" doc:"Names the fiber. Required."`
	Worker     str                 `json:"worker" type:"string" doc:"The worker of the manifest that it is of. Required."`
	Entry      str                 `json:"entry" type:"string" doc:"The export to call; default: the worker's."`
	Init       textOrJSON          `json:"init" type:"" doc:"What the guest finds as its input, up to 1 MiB: the text of a string, or the JSON text of any other value."`
	InitBase64 base64Text          `json:"init_base64" type:"string" doc:"That as base64, for bytes that are no text; not together with init."`
	Labels     labels              `json:"labels" type:"object" doc:"Texts by name, for people."`
	Restart    object[restartBody] `json:"restart" type:"object" doc:"When it is started again: when (\"never\", \"on_failure\" or \"always\"), initial, max, intensity and within."`
}

// restartBody is the member restart of it.
type restartBody struct {
	When      str      `json:"when"`
	Initial   duration `json:"initial"`
	Max       duration `json:"max"`
	Intensity whole    `json:"intensity"`
	Within    duration `json:"within"`
}

// FiberMembers lists the members of the body that starts a fiber; see [Members].
func FiberMembers() []Member { return members(reflect.TypeFor[fiberBody]()) }

// DecodeFiber reads the body that starts a fiber, as [Decoder.Decode] reads that of
// a submit. What the spec says is not checked, see [jobhost.FiberSpec.Check].
func (d *Decoder) DecodeFiber(body []byte) (jobhost.FiberSpec, error) {
	var b fiberBody
	if err := d.read(body, oneObject, &b); err != nil {
		return jobhost.FiberSpec{}, err
	}
	init, err := oneOf(form{"init", &b.Init.content}, form{"init_base64", &b.InitBase64.content})
	if err != nil {
		return jobhost.FiberSpec{}, err
	}
	r := &b.Restart.value
	return jobhost.FiberSpec{
		ID: string(b.ID), Worker: string(b.Worker), Entry: string(b.Entry), Init: init.data, Labels: b.Labels,
		Restart: jobhost.RestartPolicy{
			When: jobhost.RestartWhen(r.When), Initial: jobhost.Duration(r.Initial), Max: jobhost.Duration(r.Max),
			Intensity: int(r.Intensity), Within: jobhost.Duration(r.Within),
		},
	}, nil
}

// AppendFiber appends the body that starts a fiber. Decoding it gives an equal spec,
// unless texts of it are not valid UTF-8.
func AppendFiber(b []byte, spec *jobhost.FiberSpec) []byte {
	b = appendText(append(b, `{"id":`...), spec.ID)
	b = appendMember(b, "worker", spec.Worker)
	b = appendMember(b, "entry", spec.Entry)
	b = appendContent(b, "init", "init_base64", spec.Init)
	b = appendLabels(b, spec.Labels)
	if r := &spec.Restart; *r != (jobhost.RestartPolicy{}) {
		b = appendText(append(appendName(b, "restart"), `{"when":`...), cmp.Or(r.When, jobhost.RestartNever))
		for _, m := range []struct {
			name   string
			length jobhost.Duration
		}{{"initial", r.Initial}, {"max", r.Max}, {"within", r.Within}} {
			if m.length != 0 {
				b = appendMember(b, m.name, m.length.String())
			}
		}
		b = append(appendNumber(b, "intensity", r.Intensity), '}')
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

// split is bytes for JSON: text if they are valid UTF-8, base64 otherwise.
func split(data []byte) (*string, []byte) {
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
		w.Text, w.Base64 = split(f.Result)
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
	w.Text, w.Base64 = split(o.Data)
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
