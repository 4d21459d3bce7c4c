package wire

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jobhost/jobhost"
)

// Names of the members of the bodies that are about states.
const (
	nameStatus        = "status"
	nameMessage       = "message"
	nameEventID       = "event_id"
	nameSchemaVersion = "schema_version"

	nameTombstoneAge = "tombstone_age"
	nameDeleteAge    = "delete_age"
	nameDryRun       = "dry_run"
)

// StateMembers lists the members of the body that sets a state.
func StateMembers() []Member {
	return []Member{
		{nameStatus, "integer", "How far the task is: 0 not started, 1 started, 2147483647 finished, below 0 an error. Required."},
		{nameMessage, "string", "What people are told, up to 4 KiB."},
		{namePayload, "object", "The application's own data, a JSON object of up to 64 KiB."},
		{nameEventID, "string", "Names the write: one that is sent again with the event_id of the last one changes nothing."},
		{nameSchemaVersion, "integer", "The version of the payload's schema; left out = 1."},
	}
}

// CleanupMembers lists the members of the body that cleans states up.
func CleanupMembers() []Member {
	return []Member{
		{nameTombstoneAge, "string", `How long after its last change a job is marked as deleted, such as "30d". Required.`},
		{nameDeleteAge, "string", `How long after its last change a job is removed, which must be longer, such as "90d". Required.`},
		{nameDryRun, "boolean", "Only count."},
	}
}

const oneObject = "send one JSON object"

func names(members []Member) []string {
	list := make([]string, len(members))
	for i, m := range members {
		list[i] = m.Name
	}
	return list
}

// DecodeState reads the body that sets a state, which keeps nothing of it. What it
// says is not checked, see [jobhost.TaskState.Check]; whose it is stands elsewhere.
func (d *Decoder) DecodeState(body []byte) (s jobhost.TaskState, err error) {
	given := false
	err = d.document(body, oneObject, func(key []byte) (err error) {
		switch string(key) {
		case nameStatus:
			var n int
			n, err = d.number(nameStatus)
			s.Status, given = int32(n), true
		case nameMessage:
			s.Message, err = d.text(nameMessage)
		case namePayload:
			s.Payload, err = d.objectText(namePayload)
		case nameEventID:
			s.EventID, err = d.text(nameEventID)
		case nameSchemaVersion:
			s.SchemaVersion, err = d.number(nameSchemaVersion)
		default:
			return Unknown("member", string(key), names(StateMembers()))
		}
		return err
	})
	if err == nil && !given {
		err = jobhost.Invalid(nameStatus, "0 is not started, 1 started, 2147483647 finished, -1 error, -2 warning", "status is missing")
	}
	return s, err
}

// objectText reads an object, as its text.
func (d *Decoder) objectText(name string) ([]byte, error) {
	if d.json.PeekKind() != jsontext.KindBeginObject {
		return nil, d.unexpected(name, "an object")
	}
	raw, err := d.json.ReadValue()
	if err != nil {
		return nil, syntax(err)
	}
	return bytes.Clone(raw), nil
}

// DecodeCleanup reads the body that cleans states up. What it says is not
// checked, see [jobhost.StateCleanup.Check].
func (d *Decoder) DecodeCleanup(body []byte) (c jobhost.StateCleanup, err error) {
	err = d.document(body, oneObject, func(key []byte) error {
		switch string(key) {
		case nameTombstoneAge:
			age, err := d.duration(nameTombstoneAge)
			c.TombstoneAge = jobhost.Duration(age)
			return err
		case nameDeleteAge:
			age, err := d.duration(nameDeleteAge)
			c.DeleteAge = jobhost.Duration(age)
			return err
		case nameDryRun:
			var err error
			c.DryRun, err = d.flag(nameDryRun)
			return err
		}
		return Unknown("member", string(key), names(CleanupMembers()))
	})
	return c, err
}

// AppendState appends the body that sets a state, which must be one that passes
// [jobhost.TaskState.Check].
func AppendState(b []byte, s *jobhost.TaskState) []byte {
	b = strconv.AppendInt(append(b, `{"`+nameStatus+`":`...), int64(s.Status), 10)
	b = appendMember(b, nameMessage, s.Message)
	b = appendMember(b, nameEventID, s.EventID)
	b = appendNumber(b, nameSchemaVersion, s.SchemaVersion)
	if len(s.Payload) > 0 {
		b = append(appendName(b, namePayload), s.Payload...)
	}
	return append(b, '}')
}
