package firestorefake

import (
	"slices"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// writing is a commit in progress.
type writing struct {
	*Server
	after map[string]*pb.Document // what it has written; nil = removed
}

func (w *writing) find(name string) *pb.Document {
	if d, ok := w.after[name]; ok {
		return d
	}
	if d := w.docLocked(name); d != nil {
		return d.Document
	}
	return nil
}

func (w *writing) apply(write *pb.Write) (*pb.WriteResult, error) {
	now := timestamppb.New(w.now)
	if name := write.GetDelete(); name != "" {
		if err := check(write.GetCurrentDocument(), w.find(name)); err != nil {
			return nil, err
		}
		w.after[name] = nil
		return &pb.WriteResult{UpdateTime: now}, nil
	}
	update := write.GetUpdate()
	if update == nil {
		return nil, status.Error(codes.Unimplemented, "the fake knows updates and deletes")
	}
	before := w.find(update.GetName())
	if err := check(write.GetCurrentDocument(), before); err != nil {
		return nil, err
	}
	next := &pb.Document{Name: update.GetName(), CreateTime: now, UpdateTime: now, Fields: map[string]*pb.Value{}}
	if before != nil {
		next.CreateTime = before.GetCreateTime()
		if write.GetUpdateMask() != nil {
			next.Fields = proto.CloneOf(before).GetFields()
		}
	}
	if next.Fields == nil {
		next.Fields = map[string]*pb.Value{}
	}
	for name, v := range update.GetFields() {
		if mask := write.GetUpdateMask(); mask == nil || slices.Contains(mask.GetFieldPaths(), name) {
			next.Fields[name] = v
		}
	}
	for _, name := range write.GetUpdateMask().GetFieldPaths() {
		if update.GetFields()[name] == nil {
			delete(next.Fields, name)
		}
	}
	result := &pb.WriteResult{UpdateTime: now}
	for _, t := range write.GetUpdateTransforms() {
		if t.GetSetToServerValue() != pb.DocumentTransform_FieldTransform_REQUEST_TIME {
			return nil, status.Error(codes.Unimplemented, "the fake knows the server's time only")
		}
		v := &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: now}}
		next.Fields[t.GetFieldPath()] = v
		result.TransformResults = append(result.TransformResults, v)
	}
	w.after[next.GetName()] = next
	return result, checkFields(next.GetFields(), 1)
}

// check checks a document against a precondition.
func check(p *pb.Precondition, d *pb.Document) error {
	switch c := p.GetConditionType().(type) {
	case *pb.Precondition_Exists:
		if c.Exists && d == nil {
			return status.Error(codes.NotFound, "No document to update")
		}
		if !c.Exists && d != nil {
			return status.Error(codes.AlreadyExists, "Document already exists")
		}
	case *pb.Precondition_UpdateTime:
		if d == nil || !d.GetUpdateTime().AsTime().Equal(c.UpdateTime.AsTime()) {
			return status.Error(codes.FailedPrecondition, "the stored version does not match the required base version")
		}
	}
	return nil
}

const maxLevels = 20

// checkFields rejects what Firestore can't hold.
func checkFields(fields map[string]*pb.Value, level int) error {
	for name, v := range fields {
		if name == "" || len(name) > 1500 || strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return status.Errorf(codes.InvalidArgument, "field name %q is empty, too long or reserved", name)
		}
		if err := checkValue(v, level, false); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(v *pb.Value, level int, inArray bool) error {
	if level > maxLevels {
		return status.Error(codes.InvalidArgument, "Property contains an invalid nested entity: more than 20 levels")
	}
	switch x := v.GetValueType().(type) {
	case nil:
		return status.Error(codes.InvalidArgument, "a value without a type")
	case *pb.Value_MapValue:
		return checkFields(x.MapValue.GetFields(), level+1)
	case *pb.Value_ArrayValue:
		if inArray {
			return status.Error(codes.InvalidArgument, "Nested arrays are not allowed")
		}
		for _, e := range x.ArrayValue.GetValues() {
			if err := checkValue(e, level+1, true); err != nil {
				return err
			}
		}
	}
	return nil
}
