package machine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Place is where data are.
type Place uint8

// The places.
const (
	Nothing Place = iota // there are none: null
	Empty                // an empty list
	Input                // the workflow's input
	Result               // the result of the job of Run, which has one task
	Results              // the results of the tasks of the job of Run, as a list
	Output               // the output of the workflow of Run
	Kept                 // what was to be kept in Slot
)

// Source names data that are in the store. What a source names never changes.
type Source struct {
	Kind Place
	Run  Run // with Result, Results and Output
	Slot int // with Kept
}

// Payload is data, or where they are.
type Payload struct {
	Data        []byte
	ContentType string // of Data, if it isn't the definition's; may be empty
	// From, if there are any, says what to take instead of Data: one part without a name
	// is taken as it is, several with names make an object.
	From []Part
}

// Part is a part of a [Payload].
type Part struct {
	Name string
	Source
}

// whole is a payload that is something else as it is.
func whole(s Source) Payload { return Payload{From: []Part{{Source: s}}} }

// Compose returns a payload as bytes. Data in an object that are not JSON become
// a string, and those that are not text one in base64.
func (p *Payload) Compose(read func(Source) ([]byte, error)) ([]byte, error) {
	if len(p.From) == 0 {
		return p.Data, nil
	}
	if len(p.From) == 1 && p.From[0].Name == "" {
		return readAny(p.From[0].Source, read)
	}
	var b bytes.Buffer
	for i, part := range p.From {
		data, err := readAny(part.Source, read)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(quote(part.Name))
		b.WriteByte(':')
		b.Write(AsJSON(data))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func readAny(s Source, read func(Source) ([]byte, error)) ([]byte, error) {
	switch s.Kind {
	case Nothing:
		return []byte("null"), nil
	case Empty:
		return []byte("[]"), nil
	default:
		return read(s)
	}
}

// List returns the results of the tasks of a job as one, as [Results] names them. Those
// that are not JSON become what they do in an object.
func List(results [][]byte) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, data := range results {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(AsJSON(data))
	}
	b.WriteByte(']')
	return b.Bytes()
}

// AsJSON returns data as a JSON value: as they are if they are one, else as a string, which is
// one in base64 if they are no text.
func AsJSON(data []byte) []byte {
	switch {
	case json.Valid(data):
		return data
	case utf8.Valid(data):
		return quote(string(data))
	default:
		return quote(base64.StdEncoding.EncodeToString(data))
	}
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // no string makes one
		return []byte(`""`)
	}
	return b
}
