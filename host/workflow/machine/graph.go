package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// GraphOf returns the graph of a definition. Whether that makes sense was looked at
// before; here it is an error only if a name is twice or not there.
func GraphOf(w *jobhost.Workflow) (*Graph, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("graph of workflow %s: %w", w.Name, err)
	}
	digest := sha256.Sum256(text)
	g := &Graph{
		Digest: binary.LittleEndian.Uint64(digest[:]), Steps: make([]Node, len(w.Steps)),
		HasOutput: w.Output != "", Output: None, MaxParallel: w.MaxParallel, Timeout: time.Duration(w.Timeout),
	}
	index := make(map[string]int, len(w.Steps))
	for i := range w.Steps {
		s := &w.Steps[i]
		if _, found := index[s.Name]; found {
			return nil, fmt.Errorf("graph of workflow %s: two steps are named %s", w.Name, s.Name)
		}
		index[s.Name] = i
		g.Steps[i] = nodeOf(s)
		if s.Output {
			g.Output = i
		}
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		for _, name := range s.Needs {
			j, found := index[name]
			if !found {
				return nil, fmt.Errorf("graph of workflow %s: step %s needs %s, which is no step", w.Name, s.Name, name)
			}
			g.Steps[i].Needs = append(g.Steps[i].Needs, int32(j))
			g.Steps[j].Next = append(g.Steps[j].Next, int32(i))
		}
		if j, found := index[s.Fallback]; found {
			g.Steps[i].Fallback, g.Steps[j].FallbackOf = j, i
		} else {
			g.Steps[i].FallbackWorker = s.Fallback != ""
		}
	}
	for i := range g.Steps {
		g.Steps[i].HasFanOut = g.fansOut(i)
	}
	return g, nil
}

// fansOut reports whether a step has tasks for the elements of a list: its own, or as a
// fallback that doesn't say what it gets, that of the step that it stands in for.
func (g *Graph) fansOut(i int) bool {
	node := &g.Steps[i]
	if node.Kind != Job || node.Tasks > 1 {
		return node.HasFanOut
	}
	for range g.Steps { // fallbacks that go in a circle are found later
		if node.HasInput || node.HasFanOut || node.FallbackOf == None {
			break
		}
		node = &g.Steps[node.FallbackOf]
	}
	return node.HasFanOut
}

func nodeOf(s *jobhost.Step) Node {
	n := Node{
		Name: s.Name, Fallback: None, FallbackOf: None, OnError: s.OnError, WhenSkipped: s.WhenSkipped,
		HasWhen: s.When != "", HasInput: s.Input != "", HasFanOut: s.FanOut != "", HasTerminate: s.Terminate != "",
		Tasks: s.Tasks, Limit: time.Duration(s.Deadline),
	}
	switch {
	case s.Workflow != "":
		n.Kind = Child
	case s.Signal != "":
		n.Kind, n.Signal = Signal, s.Signal
		if wait := time.Duration(s.Timeout); wait > 0 && (n.Limit == 0 || wait < n.Limit) {
			n.Limit = wait
		}
	case s.Sleep != 0:
		n.Kind, n.Sleep = Sleep, time.Duration(s.Sleep)
	}
	return n
}
