package expr

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
)

// raw returns the payload that an expression passes on unchanged. It is not
// decoded, so [jobhost.MaxStepData] does not bound it. ok is false if the
// expression computes a value.
func (p *Program) raw(d *Data) (payload []byte, ok bool, err error) {
	switch p.passes.Root {
	case "input":
		return d.Input, true, nil
	case "item":
		return d.item, true, nil
	case "steps":
		if d.Steps == nil {
			return nil, false, nil
		}
		s, err := d.Steps(p.passes.Step)
		if err != nil {
			return nil, false, fmt.Errorf("read step %s: %w", p.passes.Step, err)
		}
		if s.Output == nil {
			return []byte("null"), true, nil
		}
		return s.Output, true, nil
	}
	return nil, false, nil
}

// AsPayload returns a payload without the quotes of JSON, if it is text: this
// is what [Program.Payload] does with values passed on unchanged.
func AsPayload(payload []byte) (data []byte, asJSON bool) {
	if !jsontext.Value(payload).IsValid() {
		return payload, false
	}
	if jsontext.Value(payload).Kind() != jsontext.KindString {
		return payload, true
	}
	text, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(payload))
	if err != nil {
		return payload, true
	}
	return text, false
}

// split returns the elements of a list unchanged. ok is false if it isn't a
// list.
func split(payload []byte) (elements []json.RawMessage, ok bool, err error) {
	if !jsontext.Value(payload).IsValid() || jsontext.Value(payload).Kind() != jsontext.KindBeginArray {
		return nil, false, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(payload))
	if _, err := d.ReadToken(); err != nil {
		return nil, false, err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		v, err := d.ReadValue()
		if err != nil {
			return nil, false, err
		}
		if len(elements) == jobhost.MaxFanOut {
			return nil, true, tooMany()
		}
		elements = append(elements, json.RawMessage(bytes.Clone(v)))
	}
	return elements, true, nil
}

func tooMany() error {
	return tooLarge("split the list, and run a workflow for each part", "the list has more than %d elements", jobhost.MaxFanOut)
}
