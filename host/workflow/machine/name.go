package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost"
)

// MaxWorkflowID is how long the id of a workflow may be, so that ids of its jobs have room. One
// that a user chose must have no dots.
const MaxWorkflowID = jobhost.MaxWorkflowIDBytes

// ID returns the id of the job of a run, and the beginning of those of its timers:
//
//	WORKFLOW.STEP.NUMBER    WORKFLOW.STEP.fNUMBER with a fallback worker
//
// A step whose name makes no id of this form is there as a digest of its name.
// The same run has the same id, and others have others, since no form of a step
// has a dot.
func (c *Machine) ID(workflow string, r Run) string {
	b := make([]byte, 0, len(workflow)+64)
	b = append(append(b, workflow...), '.')
	if r.Step != None {
		b = append(appendName(b, c.graph.Steps[r.Step].Name, maxName-len(workflow)), '.')
	}
	if r.Fallback {
		b = append(b, 'f')
	}
	return string(strconv.AppendUint(b, uint64(r.Number), 10))
}

// ChildID returns the id of the workflow of a run, which has runs with ids in turn. One
// that would leave them no room is there as a digest.
func (c *Machine) ChildID(workflow string, r Run) string {
	id := c.ID(workflow, r)
	if len(id) <= MaxWorkflowID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return jobhost.WorkflowIDPrefix + hex.EncodeToString(sum[:20])
}

// TimerID returns the id of the job of a timer: that of its run with .wake or .limit.
func (c *Machine) TimerID(workflow string, t Timer) string {
	id := c.ID(workflow, t.Run)
	if t.Purpose == Wake {
		return id + ".wake"
	}
	return id + ".limit"
}

// Read returns what the job of an id is for, as [Machine.ID] and [Machine.TimerID] have
// named it; the purpose is 0 for that of a run. false = a workflow of this machine has no
// such job.
func (c *Machine) Read(workflow, id string) (Timer, bool) {
	var t Timer
	base := id
	if s, ok := strings.CutSuffix(id, ".wake"); ok {
		t.Purpose, base = Wake, s
	} else if s, ok := strings.CutSuffix(id, ".limit"); ok {
		t.Purpose, base = Limit, s
	}
	number := base[strings.LastIndexByte(base, '.')+1:]
	number, t.Fallback = strings.CutPrefix(number, "f")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return t, false
	}
	t.Number = uint32(n)
	for t.Step = None; t.Step < len(c.graph.Steps); t.Step++ {
		if t.Purpose == 0 && c.ID(workflow, t.Run) == id || t.Purpose != 0 && c.TimerID(workflow, t) == id {
			return t, true
		}
	}
	return t, false
}

// maxName is what an id leaves for the workflow's and the step's name: two dots, f, ten
// digits and ".limit" are the rest.
const maxName = jobhost.MaxIDBytes - 19

// digestMark begins digests of names. Names that begin so are digested too.
const digestMark = "--"

func appendName(b []byte, name string, most int) []byte {
	if plain(name) && len(name) <= most {
		return append(b, name...)
	}
	sum := sha256.Sum256([]byte(name))
	return hex.AppendEncode(append(b, digestMark...), sum[:12])
}

func plain(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return name != "" && !(len(name) >= 2 && name[:2] == digestMark)
}
