package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// column is the summary of a column.
type column struct {
	Name string `json:"name"`
	// Kind is number if all nonempty fields are numbers, text otherwise, empty
	// if all are empty.
	Kind   string `json:"kind"`
	Filled int    `json:"filled"`
	Empty  int    `json:"empty"`
	// Least and Most are unchanged from the file: by value for numbers, in byte
	// order otherwise.
	Least string `json:"least"`
	Most  string `json:"most"`
	// Mean is that of numbers, to six digits.
	Mean json.Number `json:"mean,omitempty"`
}

// values collects a column.
type values struct {
	name          string
	filled, empty int
	text          span[string]
	numbers       span[float64] // as long as all values are
	notNumber     bool
	mean          float64
}

// span goes from the smallest value to the largest, each with its original text.
type span[T float64 | string] struct {
	least, most         T
	leastText, mostText string
}

func (s *span[T]) add(v T, text string, first bool) {
	if first || v < s.least {
		s.least, s.leastText = v, text
	}
	if first || v > s.most {
		s.most, s.mostText = v, text
	}
}

// summarise reads a file whose first line has the names of the columns.
func summarise(r *csv.Reader) ([]column, error) {
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the input is empty")
	}
	if err != nil {
		return nil, err
	}
	columns := make([]values, len(names))
	for i, name := range names {
		columns[i].name = strings.Clone(name)
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range columns {
			columns[i].add(record[i])
		}
	}
	summary := make([]column, len(columns))
	for i := range columns {
		summary[i] = columns[i].summary()
	}
	return summary, nil
}

func (v *values) add(field string) {
	field = strings.TrimSpace(field)
	if field == "" {
		v.empty++
		return
	}
	field = strings.Clone(field) // the line that it is part of may be long
	first := v.filled == 0
	v.filled++
	v.text.add(field, field, first)
	if v.notNumber {
		return
	}
	n, err := strconv.ParseFloat(field, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		v.notNumber = true
		return
	}
	v.numbers.add(n, field, first)
	// A sum could overflow.
	v.mean += n/float64(v.filled) - v.mean/float64(v.filled)
}

func (v *values) summary() column {
	c := column{Name: v.name, Kind: "text", Filled: v.filled, Empty: v.empty, Least: v.text.leastText, Most: v.text.mostText}
	switch {
	case v.filled == 0:
		c.Kind = "empty"
	case !v.notNumber:
		c.Kind, c.Least, c.Most = "number", v.numbers.leastText, v.numbers.mostText
		c.Mean = json.Number(strconv.FormatFloat(v.mean, 'g', 6, 64))
	}
	return c
}
