package jobabi

import "github.com/tetratelabs/wazero/api"

// Arg is an argument of a host call as the author of a guest sees it: a number,
// or a pointer with a count.
type Arg struct {
	Kind Kind
	Name string
	// Count names the number that follows a pointer; empty for a number.
	Count string
}

// Kind is the kind of an [Arg]. The lists of imports in the SDKs are generated
// from it: see genimports.
type Kind string

// The kinds.
const (
	Int32    Kind = "int32"
	Int64    Kind = "int64"
	Float64  Kind = "float64"
	Text     Kind = "text"      // UTF-8, read by the host
	Bytes    Kind = "bytes"     // read by the host
	Handles  Kind = "handles"   // an array of i32, read by the host
	Room     Kind = "room"      // where the host writes bytes; Count is the capacity
	TextRoom Kind = "text room" // where the host writes UTF-8
)

func int32Arg(name string) Arg           { return Arg{Int32, name, ""} }
func int64Arg(name string) Arg           { return Arg{Int64, name, ""} }
func float64Arg(name string) Arg         { return Arg{Float64, name, ""} }
func textArg(name, count string) Arg     { return Arg{Text, name, count} }
func bytesArg(name, count string) Arg    { return Arg{Bytes, name, count} }
func handlesArg(name, count string) Arg  { return Arg{Handles, name, count} }
func roomArg(name, count string) Arg     { return Arg{Room, name, count} }
func textRoomArg(name, count string) Arg { return Arg{TextRoom, name, count} }

// IsPointer reports whether the guest passes an address and a count.
func (a Arg) IsPointer() bool { return a.Count != "" }

// lower appends the argument's wasm types and their names.
func (a Arg) lower(types []api.ValueType, names []string) ([]api.ValueType, []string) {
	switch a.Kind {
	case Int32:
		return append(types, i32), append(names, a.Name)
	case Int64:
		return append(types, i64), append(names, a.Name)
	case Float64:
		return append(types, f64), append(names, a.Name)
	case Text, Bytes, Handles, Room, TextRoom:
	}
	return append(types, i32, i32), append(names, a.Name, a.Count)
}
