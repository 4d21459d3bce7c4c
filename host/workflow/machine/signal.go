package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
)

// signal hands a signal to the first step that waits for it, or keeps it until
// one does. Each is for one step.
func (t *turn) signal() bool {
	e := t.event
	steps := t.c.signals[e.Signal]
	switch {
	case t.rec.phase != underway:
		return t.refuse(jobhost.CodeConflict, "", "the workflow has ended", "")
	case len(steps) == 0:
		return t.refuse(jobhost.CodeNotFound, "signal", fmt.Sprintf("no step waits for a signal %q", e.Signal), t.nearSignal(e.Signal))
	case len(e.Payload) > jobhost.MaxStepData:
		return t.refuse(jobhost.CodeTooLarge, "payload",
			fmt.Sprintf("a payload of %d bytes is larger than %d", len(e.Payload), jobhost.MaxStepData), "send where it is instead")
	}
	var digest uint64
	if e.ID != "" {
		sum := sha256.Sum256([]byte(e.ID))
		if digest = binary.LittleEndian.Uint64(sum[:]); slices.Contains(t.rec.seen, digest) {
			return false
		}
	}
	waits := slices.IndexFunc(steps, func(i int) bool { return t.rec.status[i] == running })
	if waits < 0 && len(t.rec.signals) == MaxSignals {
		return t.refuse(jobhost.CodeExhausted, "signal",
			fmt.Sprintf("%d signals are kept, for which no step waits yet", MaxSignals), "send it when a step waits for it")
	}
	if e.ID != "" {
		t.rec.seen = append(t.rec.seen, digest)
		t.rec.seen = t.rec.seen[max(len(t.rec.seen)-MaxSignals, 0):]
	}
	slot := t.rec.slots
	t.rec.slots++
	t.out.Keep = append(t.out.Keep, Keep{Slot: int(slot), Data: e.Payload})
	if waits < 0 {
		t.rec.signals = append(t.rec.signals, kept{step: int32(steps[0]), slot: slot})
		return true
	}
	i := steps[waits]
	d := t.rec.detail(i)
	d.via, d.slot = signal, slot
	t.put(i, running, d)
	t.at, t.data = Source{Kind: Kept, Slot: int(slot)}, e.Payload
	t.complete(i)
	return true
}

// kept takes the first signal of a name that has come already.
func (t *turn) kept(name string) (slot uint32, found bool) {
	first := int32(t.c.signals[name][0])
	k := slices.IndexFunc(t.rec.signals, func(s kept) bool { return s.step == first })
	if k < 0 {
		return 0, false
	}
	slot = t.rec.signals[k].slot
	t.rec.signals = slices.Delete(t.rec.signals, k, k+1)
	return slot, true
}

// mostNamed is how many signals a hint lists.
const mostNamed = 8

// nearSignal is the hint for a signal that no step waits for; "" when the workflow takes none.
func (t *turn) nearSignal(name string) string {
	names := slices.Sorted(maps.Keys(t.c.signals))
	if near := text.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	if len(names) == 0 || len(names) > mostNamed {
		return ""
	}
	return "its steps wait for " + strings.Join(names, ", ")
}
