package wire

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/jsondepth"
)

// Names of the members of bodies about workflows, beside those that they share with others.
const (
	nameWorkflow   = "workflow"
	nameDefinition = "definition"
	nameReason     = "reason"
	nameStep       = "step"
)

// contentNames are the members that bytes can come in: as any JSON value, as text, or in base64.
type contentNames struct{ json, text, base64 string }

func (n *contentNames) has(name string) bool {
	return name == n.json || name == n.text || name == n.base64
}

var (
	inputNames  = contentNames{"input", "input_text", "input_base64"}
	signalNames = contentNames{namePayload, "payload_text", namePayloadBase64}
)

// WorkflowMembers lists the members of the body that starts a workflow; see [Members].
func WorkflowMembers() []Member {
	return []Member{
		{nameWorkflow, "string", "The name of a definition of the host. Either it or definition is required."},
		{nameDefinition, "object", "A definition that comes along, up to 8 MiB."},
		{nameID, "string", "Names the workflow: wf- and 1 to 77 more characters; left out = a new one. The same id with the same content is the same workflow."},
		{inputNames.json, "", "What it is started with: any JSON value."},
		{inputNames.text, "string", "That as text; not together with input."},
		{inputNames.base64, "string", "That as base64, for bytes that are no text; not together with input."},
		{nameLabels, "object", "Texts by name, added to those of the definition."},
		{nameRetention, "string", `How long it is kept after its end, such as "7d"; left out = as the host says.`},
	}
}

// SignalMembers lists the members of the body of a signal; see [Members].
func SignalMembers() []Member {
	return []Member{
		{nameID, "string", "Makes the signal count once, however often it is sent; left out = each counts."},
		{signalNames.json, "", "What the step returns that waits for it: any JSON value, up to 64 KiB."},
		{signalNames.text, "string", "That as text; not together with payload."},
		{signalNames.base64, "string", "That as base64, for bytes that are no text; not together with payload."},
	}
}

// CancelMembers and RetryMembers list those of the bodies that cancel a workflow and retry a step of it.
func CancelMembers() []Member {
	return []Member{{nameReason, "string", "Why, for people."}}
}

// RetryMembers is described with [CancelMembers].
func RetryMembers() []Member {
	return []Member{{nameStep, "string", "The step that is to run anew; left out = the one that made the workflow fail."}}
}

// DecodeWorkflow reads the body that starts a workflow, as [Decoder.Decode] reads
// that of a submit. The definition, if one comes along, is returned as it stands in
// the body, of which it is a part. What the start says is not checked, see [jobhost.WorkflowStart.Check].
func (d *Decoder) DecodeWorkflow(body []byte) (start jobhost.WorkflowStart, definition []byte, err error) {
	given := ""
	err = d.document(body, oneObject, func(key []byte) (err error) {
		switch name := string(key); {
		case name == nameWorkflow:
			start.Workflow, err = d.text(name)
		case name == nameDefinition:
			definition, err = d.raw(name)
		case name == nameID:
			start.ID, err = d.text(name)
		case inputNames.has(name):
			start.Input, err = d.oneOf(&inputNames, name, &given)
			if size := len(start.Input); err == nil && size > d.maxPayload {
				err = &jobhost.Error{
					Code: jobhost.CodeTooLarge, Field: name, Message: fmt.Sprintf("the input of %d bytes is larger than %d", size, d.maxPayload),
					Hint: "send where it is instead, or raise max_payload in the manifest",
				}
			}
		case name == nameLabels:
			start.Labels, err = d.labels()
		case name == nameRetention:
			start.Retention, err = d.duration(name)
		default:
			err = Unknown("member", name, names(WorkflowMembers()))
		}
		return err
	})
	return start, definition, err
}

// raw reads an object as it stands there.
func (d *Decoder) raw(name string) ([]byte, error) {
	if d.json.PeekKind() != jsontext.KindBeginObject {
		return nil, d.unexpected(name, "an object")
	}
	value, err := d.json.ReadValue()
	return bytes.Clone(value), syntax(err)
}

// oneOf reads bytes that come in one of several members; given is the one before.
func (d *Decoder) oneOf(n *contentNames, name string, given *string) (data []byte, err error) {
	if *given != "" {
		return nil, jobhost.Invalid(name, "", "%s and %s are both set", *given, name)
	}
	*given = name
	switch name {
	case n.text:
		text, err := d.text(name)
		return []byte(text), err
	case n.base64:
		data, _, err = d.content(name, true)
		return data, err
	}
	value, err := d.json.ReadValue()
	if err != nil {
		return nil, syntax(err)
	}
	if at := jsondepth.Exceeds(value, MaxDepth-1); at >= 0 {
		return nil, jobhost.Invalid(name, "", "nested more than %d deep at byte %d", MaxDepth, d.json.InputOffset()-int64(len(value)-at))
	}
	return bytes.Clone(value), nil
}

// DecodeSignal reads the body of a signal, all but its name.
func (d *Decoder) DecodeSignal(body []byte) (signal jobhost.WorkflowSignal, err error) {
	given := ""
	err = d.document(body, oneObject, func(key []byte) (err error) {
		switch name := string(key); {
		case name == nameID:
			signal.ID, err = d.text(name)
		case signalNames.has(name):
			signal.Payload, err = d.oneOf(&signalNames, name, &given)
		default:
			err = Unknown("member", name, names(SignalMembers()))
		}
		return err
	})
	return signal, err
}

// DecodeCancel reads the body that cancels a workflow and returns the reason,
// DecodeRetry the one that retries a step and returns its name.
func (d *Decoder) DecodeCancel(body []byte) (reason string, err error) {
	return d.onlyText(body, nameReason)
}

// DecodeRetry is described with [Decoder.DecodeCancel].
func (d *Decoder) DecodeRetry(body []byte) (step string, err error) {
	return d.onlyText(body, nameStep)
}

// onlyText reads a body with a single member, which may be left out.
func (d *Decoder) onlyText(body []byte, name string) (text string, err error) {
	err = d.document(body, oneObject, func(key []byte) (err error) {
		if string(key) != name {
			return Unknown("member", string(key), []string{name})
		}
		text, err = d.text(name)
		return err
	})
	return text, err
}

// AppendWorkflow appends the body that starts a workflow, with the definition as JSON
// if one comes along. Decoding it gives an equal start, unless texts of it are not valid UTF-8.
func AppendWorkflow(b []byte, start *jobhost.WorkflowStart, definition []byte) []byte {
	b = appendText(append(b, `{"id":`...), start.ID)
	b = appendMember(b, nameWorkflow, start.Workflow)
	if definition != nil {
		b = append(appendName(b, nameDefinition), definition...)
	}
	b = appendContent(b, inputNames.text, inputNames.base64, start.Input)
	if start.Retention != 0 {
		b = appendMember(b, nameRetention, start.Retention.String())
	}
	return append(appendLabels(b, start.Labels), '}')
}

// AppendSignal appends the body of a signal, all but its name.
func AppendSignal(b []byte, signal *jobhost.WorkflowSignal) []byte {
	b = appendText(append(b, `{"id":`...), signal.ID)
	return append(appendContent(b, signalNames.text, signalNames.base64, signal.Payload), '}')
}

// AppendCancel and AppendRetry append the bodies of the calls that have one text each.
func AppendCancel(b []byte, reason string) []byte { return appendOnly(b, nameReason, reason) }

// AppendRetry is described with [AppendCancel].
func AppendRetry(b []byte, step string) []byte { return appendOnly(b, nameStep, step) }

func appendOnly(b []byte, name, text string) []byte {
	return append(appendText(append(append(append(b, `{"`...), name...), `":`...), text), '}')
}

// WorkflowStarted is the answer to a start that waits: the workflow as it is then.
type WorkflowStarted struct {
	jobhost.WorkflowRun
	Deduplicated bool `json:"deduplicated"`
}

// WorkflowCheck is the answer about a definition without faults.
type WorkflowCheck struct {
	OK bool `json:"ok"`
	// Hash is the SHA-256 of the definition as canonical JSON, in hex.
	Hash string `json:"hash"`
}
