package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// plan says how values of a type are written and read. It is computed once for each type, to avoid reflection on types
// for each message.
type plan struct {
	write func(b []byte, v reflect.Value) []byte
	// read reads a value from a payload that scan has checked.
	read func(r *reader, v reflect.Value) error
}

type field struct {
	plan
	index int
	name  string // the field's name in JSON
	// zero is the encoding of the field's zero value, if this encoding is one byte. Otherwise zero is 0xc1, a byte with
	// which no encoded value begins.
	zero byte
	// The field `since` is the level of the first release that knows the encoded field; see [messages.Level]. 0 means
	// that every release knows it.
	since int
}

var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) (*plan, error) {
	if p, ok := plans.Load(t); ok {
		return p.(*plan), nil
	}
	p, err := makePlan(t, nil)
	if err != nil {
		return nil, messages.Errorf(messages.Internal, "cannot encode %v: %v", t, err)
	}
	plans.Store(t, p)
	return p, nil
}

// The plan of a type says how its values are encoded and decoded. makePlan computes it. The argument `within` lists the
// types that contain this type and whose plans are being computed at the moment. If the type is in this list, it
// contains itself.
func makePlan(t reflect.Type, within []reflect.Type) (*plan, error) {
	if slices.Contains(within, t) {
		return nil, fmt.Errorf("%v contains itself", t)
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Bool:
		return &plan{writeBool, readBool}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &plan{writeInt, readInt}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &plan{writeUint, readUint}, nil
	case reflect.Float32:
		return &plan{writeFloat32, readFloat}, nil
	case reflect.Float64:
		return &plan{writeFloat64, readFloat}, nil
	case reflect.String:
		return &plan{writeString, readString}, nil
	case reflect.Pointer:
		return planPointer(t, within)
	case reflect.Slice, reflect.Array:
		return planList(t, within)
	case reflect.Struct:
		return planStruct(t, within)
	}
	return nil, fmt.Errorf("values of type %v cannot be encoded", t)
}

func planPointer(t reflect.Type, within []reflect.Type) (*plan, error) {
	if t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.Slice {
		return nil, fmt.Errorf("values of type %v cannot be encoded: the pointer can be nil, and also its target", t)
	}
	elem, err := makePlan(t.Elem(), within)
	if err != nil {
		return nil, err
	}
	return &plan{writePointer(elem), readPointer(t.Elem(), elem)}, nil
}

func planList(t reflect.Type, within []reflect.Type) (*plan, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		if t.Kind() == reflect.Array {
			return &plan{writeByteArray, readByteArray}, nil
		}
		return &plan{writeBytes, readBytes}, nil
	}
	elem, err := makePlan(t.Elem(), within)
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Array {
		return &plan{writeList(elem), readArray(elem)}, nil
	}
	return &plan{writeList(elem), readSlice(t, elem)}, nil
}

func planStruct(t reflect.Type, within []reflect.Type) (*plan, error) {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name := jsonName(f)
		if name == "" {
			continue
		}
		p, err := makePlan(f.Type, within)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		since, err := sinceOf(f)
		if err == nil && len(fields) > 0 && since < fields[len(fields)-1].since {
			err = fmt.Errorf("has level %d, but the field before it has the higher level %d", since, fields[len(fields)-1].since)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		fields = append(fields, field{plan: *p, index: i, name: name, zero: zeroOf(f.Type), since: since})
	}
	return &plan{writeStruct(fields), readStruct(fields)}, nil
}

// sinceOf returns the level in a field's tag, as in `since:"2"`; 0 if there is none.
func sinceOf(f reflect.StructField) (int, error) {
	tag := f.Tag.Get("since")
	if tag == "" {
		return 0, nil
	}
	level, err := strconv.Atoi(tag)
	if err != nil || level < 2 {
		return 0, fmt.Errorf("the tag \"since\" is %q; it must be a level, 2 or higher", tag)
	}
	return level, nil
}

// zeroOf returns the encoding of a type's zero value if that is one byte. Otherwise it returns 0xc1, a byte that
// MessagePack never uses.
func zeroOf(t reflect.Type) byte {
	switch {
	case t.Kind() == reflect.Bool:
		return msgpcode.False
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return 0
	case t.Kind() == reflect.String:
		return msgpcode.FixedStrLow
	case t.Kind() == reflect.Pointer:
		return msgpcode.Nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return msgpcode.FixedArrayLow
	}
	return 0xc1
}

// jsonName returns the name of a field in JSON, or "" if the field is not encoded.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case !f.IsExported() || name == "-":
		return ""
	case name == "":
		return f.Name
	}
	return name
}
