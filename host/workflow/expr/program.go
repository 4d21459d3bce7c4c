package expr

import (
	"context"
	"encoding/json"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobhost/jobhost"
)

// Program is a compiled expression. It is safe for concurrent use with different [Data].
type Program struct {
	kind    Kind
	source  string
	program cel.Program
	reads   []place
	steps   []string
	used    map[string]bool
	passes  Passed
}

// place is where a step is referred to.
type place struct {
	step  string
	start common.Location
}

// Passed is what an expression passes on unchanged: input, item, or the output of a step.
type Passed struct {
	Root string // "input", "item" or "steps"; empty = the expression computes a value
	Step string // with "steps"
}

// Source returns the text of the expression.
func (p *Program) Source() string { return p.source }

// Steps returns the names of the steps that the expression refers to, sorted: no others are
// read from [Data.Steps].
func (p *Program) Steps() []string { return p.steps }

// Passes returns what the expression passes on unchanged.
func (p *Program) Passes() Passed { return p.passes }

// Uses reports whether the expression refers to one of input, item, index, output and
// workflow.
func (p *Program) Uses(root string) bool { return p.used[root] }

// Bool runs a condition. Errors are the context's, or an invalid or too_large [jobhost.Error]
// that says what is wrong with the expression or its data. The other methods have the same
// errors.
func (p *Program) Bool(ctx context.Context, d *Data) (bool, error) {
	v, err := p.run(ctx, d)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, jobhost.Invalid("", "write a comparison", "the condition is of type %s, not bool", valueName(v))
	}
	return bool(b), nil
}

// JSON returns the value as JSON: members sorted by name, no space, numbers and text in their
// shortest form. The same value always gives the same bytes. JSON passed on unchanged keeps
// its form, and may have any size.
func (p *Program) JSON(ctx context.Context, d *Data) (json.RawMessage, error) {
	if raw, ok, err := p.raw(d); err != nil {
		return nil, err
	} else if ok && jsontext.Value(raw).IsValid() {
		return raw, nil
	}
	v, err := p.run(ctx, d)
	if err != nil {
		return nil, err
	}
	return encode(nil, v)
}

// Payload returns the value as a payload: text and bytes as they are, with asJSON false, and
// anything else as JSON. A value passed on keeps its form, and may have any size.
func (p *Program) Payload(ctx context.Context, d *Data) (payload []byte, asJSON bool, err error) {
	if raw, ok, err := p.raw(d); err != nil {
		return nil, false, err
	} else if ok {
		payload, asJSON = AsPayload(raw)
		return payload, asJSON, nil
	}
	v, err := p.run(ctx, d)
	if err != nil {
		return nil, false, err
	}
	switch v := v.(type) {
	case types.String:
		payload = []byte(v)
	case types.Bytes:
		payload = []byte(v)
	default:
		payload, err = encode(nil, v)
		return payload, true, err
	}
	if len(payload) > MaxResultBytes {
		return nil, false, tooLong()
	}
	return payload, false, nil
}

// List returns the elements of the value, at most [jobhost.MaxFanOut], each as JSON; unless
// passed on unchanged, they are bounded together like a value.
func (p *Program) List(ctx context.Context, d *Data) ([]json.RawMessage, error) {
	if raw, ok, err := p.raw(d); err != nil {
		return nil, err
	} else if ok {
		if elements, isList, err := split(raw); isList || err != nil {
			return elements, err
		}
	}
	v, err := p.run(ctx, d)
	if err != nil {
		return nil, err
	}
	l, ok := v.(traits.Lister)
	if !ok {
		return nil, jobhost.Invalid("", "", "fan_out is of type %s, not a list", valueName(v))
	}
	var elements []json.RawMessage
	total := 0
	for i := l.Iterator(); i.HasNext() == types.True; {
		element, err := encode(nil, i.Next())
		if err != nil {
			return nil, err
		}
		if total += len(element); total > MaxResultBytes {
			return nil, tooLong()
		}
		if len(elements) == jobhost.MaxFanOut {
			return nil, tooMany()
		}
		elements = append(elements, element)
	}
	return elements, nil
}

func (p *Program) run(ctx context.Context, d *Data) (ref.Val, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run an expression: %w", context.Cause(ctx))
	}
	if d.spent > MaxTotalCost {
		return nil, tooLarge("select less for each element, or let a worker do it",
			"the expressions of the elements took more than %d operations together", MaxTotalCost)
	}
	v, details, err := p.program.ContextEval(ctx, activation{d, p})
	if details != nil && details.ActualCost() != nil {
		d.spent += *details.ActualCost()
	}
	if err == nil {
		return v, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run an expression: %w", context.Cause(ctx))
	}
	if d.trouble != nil {
		return nil, d.trouble
	}
	return nil, limit(err)
}

func valueName(v ref.Val) string {
	if v == types.NullValue {
		return "null"
	}
	return v.Type().TypeName()
}
