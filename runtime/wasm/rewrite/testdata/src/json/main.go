// Command json is a guest that decodes JSON, works on it and encodes it, as
// many jobs do. Being Go it also has a collector at work.
package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

type order struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

// run does n rounds and returns a number that depends on all of them.
//
//go:wasmexport run
func run(n uint32) uint32 {
	var orders []order
	for i := range 50 {
		orders = append(orders, order{ID: i, Name: "order " + strconv.Itoa(i*7919%1000), Price: float64(i) * 1.25, Tags: []string{"a", "bc", "def"}})
	}
	text, err := json.Marshal(orders)
	if err != nil {
		return 0
	}
	sum := uint32(0)
	for range n {
		var decoded []order
		if err := json.Unmarshal(text, &decoded); err != nil {
			return 0
		}
		slices.SortFunc(decoded, func(a, b order) int { return strings.Compare(a.Name, b.Name) })
		again, err := json.Marshal(decoded)
		if err != nil {
			return 0
		}
		for _, c := range again {
			sum = sum*31 + uint32(c)
		}
	}
	return sum
}

func main() {}
