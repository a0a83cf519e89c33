package wire

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The functions below append a value to a slice of bytes, in its shortest form. The library of package msgpcode would
// write the same bytes, but only with a call of an io.Writer for each value.

func writeBool(b []byte, v reflect.Value) []byte {
	if v.Bool() {
		return append(b, msgpcode.True)
	}
	return append(b, msgpcode.False)
}

func writeInt(b []byte, v reflect.Value) []byte {
	i := v.Int()
	switch {
	case i >= 0:
		return appendUint(b, uint64(i))
	case i >= -32:
		return append(b, byte(i))
	case i >= math.MinInt8:
		return append(b, msgpcode.Int8, byte(i))
	case i >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Int16), uint16(i))
	case i >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Int32), uint32(i))
	}
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Int64), uint64(i))
}

func writeUint(b []byte, v reflect.Value) []byte { return appendUint(b, v.Uint()) }

func appendUint(b []byte, u uint64) []byte {
	switch {
	case u <= 0x7f:
		return append(b, byte(u))
	case u <= math.MaxUint8:
		return append(b, msgpcode.Uint8, byte(u))
	case u <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Uint16), uint16(u))
	case u <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Uint32), uint32(u))
	}
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Uint64), u)
}

func writeFloat32(b []byte, v reflect.Value) []byte {
	return binary.BigEndian.AppendUint32(append(b, msgpcode.Float), math.Float32bits(float32(v.Float())))
}

func writeFloat64(b []byte, v reflect.Value) []byte {
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Double), math.Float64bits(v.Float()))
}

func writeString(b []byte, v reflect.Value) []byte {
	s := v.String()
	if len(s) < 32 {
		b = append(b, msgpcode.FixedStrLow|byte(len(s)))
	} else {
		b = appendLength(b, len(s), msgpcode.Str8, msgpcode.Str16, msgpcode.Str32)
	}
	return append(b, s...)
}

func writeBytes(b []byte, v reflect.Value) []byte {
	b = appendLength(b, v.Len(), msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32)
	return append(b, v.Bytes()...)
}

func writeByteArray(b []byte, v reflect.Value) []byte {
	b = appendLength(b, v.Len(), msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32)
	for i := range v.Len() {
		b = append(b, byte(v.Index(i).Uint()))
	}
	return b
}

func writePointer(elem *plan) func([]byte, reflect.Value) []byte {
	return func(b []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(b, msgpcode.Nil)
		}
		return elem.write(b, v.Elem())
	}
}

func writeList(elem *plan) func([]byte, reflect.Value) []byte {
	return func(b []byte, v reflect.Value) []byte {
		n := v.Len()
		b = appendArray(b, n)
		for i := range n {
			b = elem.write(b, v.Index(i))
		}
		return b
	}
}

// writeStruct leaves out the empty fields at the end that older releases do not know, so that those releases can read
// the bytes.
func writeStruct(fields []field) func([]byte, reflect.Value) []byte {
	return func(b []byte, v reflect.Value) []byte {
		n := len(fields)
		for n > 0 && fields[n-1].since > 0 && empty(v.Field(fields[n-1].index)) {
			n--
		}
		b = appendArray(b, n)
		for i := range fields[:n] {
			b = fields[i].write(b, v.Field(fields[i].index))
		}
		return b
	}
}

// empty reports whether a value has the encoding of the zero value.
func empty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, msgpcode.FixedArrayLow|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Array16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, msgpcode.Array32), uint32(n))
}

// appendLength writes the length of a string. Before the length it writes one of the three codes, which says how many
// bytes the length has.
func appendLength(b []byte, n int, code8, code16, code32 byte) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(b, code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code32), uint32(n))
}
