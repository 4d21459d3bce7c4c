package main

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// report is the result.
type report struct {
	// Lines counts all lines except empty ones: Requests and Malformed.
	Lines     int `json:"lines"`
	Requests  int `json:"requests"`
	Malformed int `json:"malformed"`
	// Bytes is the sum of the sizes of the responses.
	Bytes int64 `json:"bytes"`
	// Status counts responses by class, such as "2xx"; classes that don't occur
	// are left out.
	Status map[string]int `json:"status"`
	// ErrorRate is the fraction of responses of class 4xx and 5xx, to four places.
	ErrorRate float64 `json:"error_rate"`
	// First and Last are the earliest and the latest time, in UTC; these need
	// not be those of the first and the last line.
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Paths and Clients are how many different ones there are.
	Paths      int     `json:"paths"`
	Clients    int     `json:"clients"`
	TopPaths   []tally `json:"top_paths"`
	TopClients []tally `json:"top_clients"`
}

// tally is the data of one path or client.
type tally struct {
	Name     string `json:"name"`
	Requests int    `json:"requests"`
	Bytes    int64  `json:"bytes"`
}

// top is how many paths and clients a report names.
const top = 5

// stats accumulates the statistics of lines.
type stats struct {
	requests, malformed int
	bytes               int64
	classes             [6]int // by the first digit of the status
	first, last         int64  // Unix seconds, once there are requests
	paths, clients      tallies
}

func newStats() *stats {
	return &stats{paths: newTallies(), clients: newTallies()}
}

func (s *stats) add(line []byte) {
	if len(line) == 0 {
		return
	}
	e, ok := parse(line)
	if !ok {
		s.malformed++
		return
	}
	if s.requests == 0 {
		s.first, s.last = e.time, e.time
	}
	s.first, s.last = min(s.first, e.time), max(s.last, e.time)
	s.requests++
	s.bytes += e.bytes
	s.classes[e.status/100]++
	s.paths.add(e.path, e.bytes)
	s.clients.add(e.client, e.bytes)
}

func (s *stats) report() report {
	r := report{
		Lines:      s.requests + s.malformed,
		Requests:   s.requests,
		Malformed:  s.malformed,
		Bytes:      s.bytes,
		Status:     map[string]int{},
		Paths:      len(s.paths.list),
		Clients:    len(s.clients.list),
		TopPaths:   s.paths.highest(),
		TopClients: s.clients.highest(),
	}
	for class, n := range s.classes {
		if n > 0 {
			r.Status[className(class)] = n
		}
	}
	if s.requests > 0 {
		rate := float64(s.classes[4]+s.classes[5]) / float64(s.requests)
		r.ErrorRate = math.Round(rate*1e4) / 1e4
		first, last := time.Unix(s.first, 0).UTC(), time.Unix(s.last, 0).UTC()
		r.First, r.Last = &first, &last
	}
	return r
}

func className(class int) string { return strconv.Itoa(class) + "xx" }

// tallies keeps a tally for each name.
type tallies struct {
	index map[string]int // of a name in list
	list  []tally
}

func newTallies() tallies { return tallies{index: map[string]int{}} }

// add counts a request. The compiler looks up a []byte without converting it to
// a string; only new names are copied.
func (t *tallies) add(name []byte, bytes int64) {
	i, known := t.index[string(name)]
	if !known {
		i = len(t.list)
		t.list = append(t.list, tally{Name: string(name)})
		t.index[t.list[i].Name] = i
	}
	t.list[i].Requests++
	t.list[i].Bytes += bytes
}

// highest returns those with the most requests; equal ones are sorted by name.
// This reorders the list, so nothing can be added afterwards.
func (t *tallies) highest() []tally {
	slices.SortFunc(t.list, func(a, b tally) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return append([]tally{}, t.list[:min(len(t.list), top)]...)
}
