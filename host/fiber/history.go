package fiber

import (
	"container/list"

	"github.com/jobhost/jobhost"
)

// history remembers the fibers that ended last, one per id. The registry's
// mutex protects it.
type history struct {
	most, mostBytes int

	byID  map[string]*list.Element
	ended list.List // of *jobhost.Fiber, oldest first
	bytes int
}

// add remembers a fiber, replacing an earlier one with its id.
func (h *history) add(end *jobhost.Fiber) {
	if e := h.byID[end.ID]; e != nil {
		h.remove(e)
	}
	h.byID[end.ID] = h.ended.PushBack(end)
	h.bytes += weight(end)
	for h.ended.Len() > h.most || h.bytes > h.mostBytes && h.ended.Len() > 1 {
		h.remove(h.ended.Front())
	}
}

func (h *history) remove(e *list.Element) {
	end := h.ended.Remove(e).(*jobhost.Fiber)
	delete(h.byID, end.ID)
	h.bytes -= weight(end)
}

// get returns the fiber with an id; nil = none.
func (h *history) get(id string) *jobhost.Fiber {
	if e := h.byID[id]; e != nil {
		return e.Value.(*jobhost.Fiber)
	}
	return nil
}

// weight is the size of the guest's data that is kept for a fiber, in bytes.
func weight(end *jobhost.Fiber) int {
	n := len(end.Result)
	for key, value := range end.Labels {
		n += len(key) + len(value)
	}
	if f := end.Failure; f != nil {
		n += len(f.Code) + len(f.Message) + len(f.Context) + len(f.Stack)
	}
	return n
}
