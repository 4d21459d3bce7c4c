package firestorestate

import (
	"math"
	"strconv"
	"strings"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state"
)

// The fields of a state's document.
const (
	fieldTask    = "taskID"
	fieldTag     = "tag"
	fieldStatus  = "status"
	fieldMessage = "message"
	fieldTime    = "timestamp"
	fieldVersion = "version"
	fieldEvent   = "eventID"
	fieldPayload = "payload"
	fieldSchema  = "schemaVersion"
)

// stateID is the id of a state's document in the collection of its job.
func stateID(task int, tag string) string { return strconv.Itoa(task) + "-" + tag }

// encodeState returns the fields of a state's document but for its time. All are
// there, so that a write that merges does the same as one that replaces.
func encodeState(s *state.State) map[string]*pb.Value {
	return map[string]*pb.Value{
		fieldTask:    integer(int64(s.TaskID)),
		fieldTag:     text(s.Tag),
		fieldStatus:  integer(int64(s.Status)),
		fieldMessage: text(s.Message),
		fieldVersion: integer(s.Version),
		fieldEvent:   text(s.EventID),
		fieldPayload: encodePayload(s.Payload),
		fieldSchema:  integer(int64(s.SchemaVersion)),
	}
}

// decodeState reads a state's document.
func decodeState(job state.Job, d *pb.Document) (state.State, error) {
	f := d.GetFields()
	s := state.State{
		JobID: job.ID, Tag: f[fieldTag].GetStringValue(), Message: f[fieldMessage].GetStringValue(), EventID: f[fieldEvent].GetStringValue(),
		Timestamp: timeOf(f[fieldTime], d.GetUpdateTime()), Payload: decodePayload(f[fieldPayload]), SchemaVersion: 1,
	}
	task, ok1 := intOf(f[fieldTask])
	status, ok2 := intOf(f[fieldStatus])
	version, ok3 := intOf(f[fieldVersion])
	if schema, ok := intOf(f[fieldSchema]); ok {
		s.SchemaVersion = int(schema)
	}
	s.TaskID, s.Status, s.Version = int(task), int32(status), version //nolint:gosec // seen to below
	fits := task >= 0 && task < jobhost.MaxTasks && status >= math.MinInt32 && status <= math.MaxInt32 && version >= 1
	if !ok1 || !ok2 || !ok3 || !fits || lastOf(d.GetName()) != stateID(s.TaskID, s.Tag) {
		return state.State{}, &jobhost.Error{Code: jobhost.CodeInternal, Message: "the document " + d.GetName() + " is not a state"}
	}
	return s, nil
}

func lastOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func integer(n int64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: n}}
}

func text(s string) *pb.Value { return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: s}} }

func null() *pb.Value {
	return &pb.Value{ValueType: &pb.Value_NullValue{NullValue: structpb.NullValue_NULL_VALUE}}
}

// intOf returns a number that is an integer. Some languages write all as doubles.
func intOf(v *pb.Value) (int64, bool) {
	switch n := v.GetValueType().(type) {
	case *pb.Value_IntegerValue:
		return n.IntegerValue, true
	case *pb.Value_DoubleValue:
		i := int64(n.DoubleValue)
		return i, float64(i) == n.DoubleValue
	}
	return 0, false
}

// timeOf returns a time, or another when there is none.
func timeOf(v *pb.Value, other *timestamppb.Timestamp) time.Time {
	if t := v.GetTimestampValue(); t != nil {
		return t.AsTime()
	}
	return other.AsTime()
}

// serverTime sets a field to the server's time.
func serverTime(field string) []*pb.DocumentTransform_FieldTransform {
	return []*pb.DocumentTransform_FieldTransform{{
		FieldPath:     field,
		TransformType: &pb.DocumentTransform_FieldTransform_SetToServerValue{SetToServerValue: pb.DocumentTransform_FieldTransform_REQUEST_TIME},
	}}
}

func exists(yes bool) *pb.Precondition {
	return &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: yes}}
}

func remove(name string) *pb.Write {
	return &pb.Write{Operation: &pb.Write_Delete{Delete: name}}
}
