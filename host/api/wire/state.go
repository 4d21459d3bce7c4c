package wire

import (
	"reflect"
	"strconv"

	"github.com/jobhost/jobhost"
)

// stateBody is the body that sets a state.
type stateBody struct {
	Status        givenWhole `json:"status" type:"integer" doc:"How far the task is: 0 not started, 1 started, 2147483647 finished, below 0 an error. Required."`
	Message       str        `json:"message" type:"string" doc:"Message for people, up to 4 KiB."`
	Payload       rawObject  `json:"payload" type:"object" doc:"The application's own data, a JSON object of up to 64 KiB."`
	EventID       str        `json:"event_id" type:"string" doc:"Names the write: one that is sent again with the event_id of the last one changes nothing."`
	SchemaVersion whole      `json:"schema_version" type:"integer" doc:"The version of the payload's schema; default: 1."`
}

// cleanupBody is the body that cleans states up.
type cleanupBody struct {
	TombstoneAge duration `json:"tombstone_age" type:"string" doc:"How long after its last change a job is marked as deleted, such as \"30d\". Required."`
	DeleteAge    duration `json:"delete_age" type:"string" doc:"How long after its last change a job is removed, which must be longer, such as \"90d\". Required."`
	DryRun       flag     `json:"dry_run" type:"boolean" doc:"Only count."`
}

// StateMembers lists the members of the body that sets a state.
func StateMembers() []Member { return members(reflect.TypeFor[stateBody]()) }

// CleanupMembers lists the members of the body that cleans states up.
func CleanupMembers() []Member { return members(reflect.TypeFor[cleanupBody]()) }

// DecodeState reads the body that sets a state, which keeps nothing of it. What it
// says is not checked, see [jobhost.TaskState.Check]; whose it is stands elsewhere.
func (d *Decoder) DecodeState(body []byte) (jobhost.TaskState, error) {
	var b stateBody
	if err := d.read(body, oneObject, &b); err != nil {
		return jobhost.TaskState{}, err
	}
	if !b.Status.given {
		return jobhost.TaskState{}, jobhost.Invalid("status", "0 is not started, 1 started, 2147483647 finished, -1 error, -2 warning", "status is missing")
	}
	return jobhost.TaskState{
		Status: int32(b.Status.whole), Message: string(b.Message), Payload: []byte(b.Payload), //nolint:gosec // it was read as 32 bits
		EventID: string(b.EventID), SchemaVersion: int(b.SchemaVersion),
	}, nil
}

// DecodeCleanup reads the body that cleans states up. What it says is not
// checked, see [jobhost.StateCleanup.Check].
func (d *Decoder) DecodeCleanup(body []byte) (jobhost.StateCleanup, error) {
	var b cleanupBody
	err := d.read(body, oneObject, &b)
	if err != nil {
		return jobhost.StateCleanup{}, err
	}
	return jobhost.StateCleanup{TombstoneAge: jobhost.Duration(b.TombstoneAge), DeleteAge: jobhost.Duration(b.DeleteAge), DryRun: bool(b.DryRun)}, nil
}

// AppendState appends the body that sets a state, which must be one that passes
// [jobhost.TaskState.Check].
func AppendState(b []byte, s *jobhost.TaskState) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(s.Status), 10)
	b = appendMember(b, "message", s.Message)
	b = appendMember(b, "event_id", s.EventID)
	b = appendNumber(b, "schema_version", s.SchemaVersion)
	if len(s.Payload) > 0 {
		b = append(appendName(b, "payload"), s.Payload...)
	}
	return append(b, '}')
}
