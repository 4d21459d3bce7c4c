// Command etl is a worker with an entry for each step of a small pipeline: it parses a
// table of the world's time zones, reports what is wrong with it, summarizes it,
// transforms the valid rows, and stores the result in its keys.
package main

import (
	"encoding/json"
	"errors"
	"fmt"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() {
	// Done before the sandbox's memory is saved as the initial state of all jobs.
	for _, v := range []any{&order{}, &table{}, &verdict{}, &summary{}, &found{}, &ready{}} {
		text, _ := json.Marshal(v)
		_ = json.Unmarshal(text, v)
	}
	jobhost.Handle(step(parse))
}

func main() {}

//go:wasmexport validate
func validateEntry(n uint32) uint64 { return jobhost.Entry(n, step(validate)) }

//go:wasmexport summarise
func summariseEntry(n uint32) uint64 { return jobhost.Entry(n, step(summarise)) }

//go:wasmexport transform
func transformEntry(n uint32) uint64 { return jobhost.Entry(n, step(transform)) }

//go:wasmexport store
func storeEntry(n uint32) uint64 { return jobhost.Entry(n, step(store)) }

// step makes a handler from a function from JSON to JSON. Input that the function
// doesn't accept can't be cured by another attempt.
func step[In, Out any](f func(*jobhost.Job, In) (Out, error)) jobhost.Handler {
	return func(job *jobhost.Job) ([]byte, error) {
		var in In
		if err := json.Unmarshal(job.Input(), &in); err != nil {
			return nil, invalid("bad_input", fmt.Errorf("the input: %w", err))
		}
		out, err := f(job, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

func invalid(code string, err error) error {
	return jobhost.Permanent(&jobhost.Failure{Err: err, Code: code, Category: jobhost.Validation})
}

// order is the input of the workflow.
type order struct {
	File string `json:"file"`
}

// table is what parse returns.
type table struct {
	Rows       []row     `json:"rows"`
	Unreadable []problem `json:"unreadable"`
}

type row struct {
	Line        int    `json:"line"`
	Country     string `json:"country"`
	Coordinates string `json:"coordinates"`
	Zone        string `json:"zone"`
	Comments    string `json:"comments,omitempty"`
}

type problem struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// verdict is what validate returns. Problems are in line order.
type verdict struct {
	Good     int       `json:"good"`
	Bad      int       `json:"bad"`
	Problems []problem `json:"problems"`
}

// summary is what summarise returns.
type summary struct {
	Lines     int            `json:"lines"`
	Countries int            `json:"countries"`
	Areas     map[string]int `json:"areas"`
}

// found is the input of transform: the outputs of the steps that it needs, by name.
type found struct {
	Parse    table   `json:"parse"`
	Validate verdict `json:"validate"`
}

// zone is the result of a row.
type zone struct {
	Zone      string  `json:"zone"`
	Country   string  `json:"country"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// ready is the input of store.
type ready struct {
	Transform map[string][]zone `json:"transform"` // by area
	Summarise summary           `json:"summarise"`
}

var errNothing = errors.New("there is nothing in the file")
