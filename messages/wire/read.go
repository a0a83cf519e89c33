package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"github.com/candor-grid/candor/messages"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// reader reads a payload that scan has checked.
type reader struct {
	data   []byte
	at     int
	budget int // bytes that may still be allocated for lists and for values behind pointers
	recent [8]string
	again  *Decoder // allocates the values; nil means to use new memory
	// Each field has the level of the release that added it. The field `level` is the highest of these levels in the
	// data that was read. If `lenient` is true, unknown fields are skipped.
	level   int
	lenient bool
}

// budgetFor bounds the memory that a payload may take, in bytes. With all fields written, a byte of payload takes at
// most 24 bytes of memory (an empty list in a struct). A payload that leaves out fields could take a hundred times its
// size.
func budgetFor(data []byte) int { return 32*len(data) + 4096 }

// misfit is the error for a value that does not fit its type, with the path of the value.
type misfit struct {
	kind messages.Kind
	path string
	why  string
}

func (m *misfit) Error() string { return m.why }

// The function `under` puts a step, such as ".name" or "[3]", before the path of an error.
func under(step string, err error) error {
	if m, ok := errors.AsType[*misfit](err); ok {
		m.path = step + m.path
	}
	return err
}

// refusal returns the error that the sender of the payload gets.
func refusal(t reflect.Type, err error) error {
	m, ok := errors.AsType[*misfit](err)
	if !ok {
		return messages.Errorf(messages.Invalid, "%s: %v", t.Name(), err)
	}
	where := strings.TrimPrefix(m.path, ".")
	where = cmp.Or(where, t.Name())
	return messages.Errorf(m.kind, "%s: %s", where, m.why)
}

func unfit(format string, args ...any) error {
	return &misfit{kind: messages.Invalid, why: fmt.Sprintf(format, args...)}
}

func (r *reader) wrong(want string) error {
	found := "a number"
	switch c := codes[r.data[r.at]]; {
	case r.data[r.at] == msgpcode.Nil:
		found = "nil"
	case r.data[r.at] == msgpcode.True || r.data[r.at] == msgpcode.False:
		found = "a boolean"
	case c.class == text:
		found = "a string"
	case c.class == array:
		found = "a list"
	case c.class == table:
		found = "a map"
	}
	return unfit("is %s, must be %s", found, want)
}

func (r *reader) spend(bytes int) error {
	if r.budget -= bytes; r.budget < 0 {
		return &misfit{kind: messages.TooLarge, why: "has elements without fields, which take far more memory than the payload; send every field of each element"}
	}
	return nil
}

// head reads the first byte of a value and the count that follows it. It returns false if the value is not of the class
// `want`.
func (r *reader) head(want class) (count int, ok bool) {
	c := codes[r.data[r.at]]
	if c.class != want {
		return 0, false
	}
	r.at++
	count = c.counted(r.data[r.at:])
	r.at += int(c.width)
	return count, true
}

func readBool(r *reader, v reflect.Value) error {
	switch r.data[r.at] {
	case msgpcode.True:
		v.SetBool(true)
	case msgpcode.False:
		v.SetBool(false)
	default:
		return r.wrong("true or false")
	}
	r.at++
	return nil
}

// integer reads any integer. It returns the bits of the integer as a uint64, and whether the integer is negative.
func (r *reader) integer() (bits uint64, negative, ok bool) {
	first := r.data[r.at]
	if first <= msgpcode.PosFixedNumHigh {
		r.at++
		return uint64(first), false, true
	}
	rest := r.data[r.at+1:]
	var i int64
	switch first {
	case msgpcode.Uint8:
		bits = uint64(rest[0])
	case msgpcode.Uint16:
		bits = uint64(binary.BigEndian.Uint16(rest))
	case msgpcode.Uint32:
		bits = uint64(binary.BigEndian.Uint32(rest))
	case msgpcode.Uint64:
		bits = binary.BigEndian.Uint64(rest)
	case msgpcode.Int8:
		i = int64(int8(rest[0]))
	case msgpcode.Int16:
		i = int64(int16(binary.BigEndian.Uint16(rest)))
	case msgpcode.Int32:
		i = int64(int32(binary.BigEndian.Uint32(rest)))
	case msgpcode.Int64:
		i = int64(binary.BigEndian.Uint64(rest))
	default:
		if !msgpcode.IsFixedNum(first) {
			return 0, false, false
		}
		i = int64(int8(first))
	}
	r.at += 1 + int(codes[first].width)
	return bits | uint64(i), i < 0, true
}

func readInt(r *reader, v reflect.Value) error {
	bits, negative, ok := r.integer()
	switch {
	case !ok:
		return r.wrong("an integer")
	case !negative && bits > math.MaxInt64:
		return unfit("%d does not fit %d bits with a sign", bits, v.Type().Bits())
	case v.OverflowInt(int64(bits)):
		return unfit("%d does not fit %d bits with a sign", int64(bits), v.Type().Bits())
	}
	v.SetInt(int64(bits))
	return nil
}

func readUint(r *reader, v reflect.Value) error {
	bits, negative, ok := r.integer()
	switch {
	case !ok:
		return r.wrong("an integer")
	case negative:
		return unfit("%d must not be negative", int64(bits))
	case v.OverflowUint(bits):
		return unfit("%d does not fit %d bits", bits, v.Type().Bits())
	}
	v.SetUint(bits)
	return nil
}

// float reads a float, or an integer that a float holds exactly, because some languages write 1.0 as 1.
func (r *reader) float() (float64, error) {
	const exact = 1 << 53
	rest := r.data[r.at+1:]
	switch r.data[r.at] {
	case msgpcode.Float:
		r.at += 5
		return float64(math.Float32frombits(binary.BigEndian.Uint32(rest))), nil
	case msgpcode.Double:
		r.at += 9
		return math.Float64frombits(binary.BigEndian.Uint64(rest)), nil
	}
	bits, negative, ok := r.integer()
	if !ok {
		return 0, r.wrong("a number")
	}
	if !negative && bits > exact || negative && int64(bits) < -exact {
		return 0, unfit("the integer is too large for a floating-point number")
	}
	return float64(int64(bits)), nil
}

func readFloat(r *reader, v reflect.Value) error {
	f, err := r.float()
	if err == nil && v.OverflowFloat(f) {
		return unfit("%v does not fit 32 bits", f)
	}
	v.SetFloat(f)
	return err
}

// text reads a string or a byte string. The result shares its memory with the payload.
func (r *reader) text(binary bool) ([]byte, bool) {
	first := r.data[r.at]
	if (first >= msgpcode.Bin8 && first <= msgpcode.Bin32) != binary {
		return nil, false
	}
	n, ok := r.head(text)
	if !ok {
		return nil, false
	}
	r.at += n
	return r.data[r.at-n : r.at], true
}

func readString(r *reader, v reflect.Value) error {
	s, ok := r.text(false)
	if !ok {
		return r.wrong("a text string")
	}
	v.SetString(r.share(s))
	return nil
}

// share returns b as a string. Names often repeat in a list, so share returns an earlier string with the same bytes if
// it still has one.
func (r *reader) share(b []byte) string {
	switch {
	case r.again != nil:
		return unsafe.String(unsafe.SliceData(b), len(b))
	case len(b) == 0 || len(b) > 63:
		return string(b)
	}
	slot := &r.recent[(int(b[0])+len(b))%len(r.recent)]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

func readBytes(r *reader, v reflect.Value) error {
	s, ok := r.text(true)
	if !ok {
		return r.wrong("a byte string")
	}
	switch {
	case len(s) == 0:
	case r.again != nil:
		v.SetBytes(s)
	default:
		v.SetBytes(append([]byte(nil), s...))
	}
	return nil
}

func readByteArray(r *reader, v reflect.Value) error {
	s, ok := r.text(true)
	if !ok || len(s) != v.Len() {
		return unfit("must be a byte string of %d bytes", v.Len())
	}
	reflect.Copy(v, reflect.ValueOf(s))
	return nil
}

func readPointer(t reflect.Type, elem *plan) func(*reader, reflect.Value) error {
	return func(r *reader, v reflect.Value) error {
		if r.data[r.at] == msgpcode.Nil {
			r.at++
			return nil
		}
		if err := r.spend(int(t.Size())); err != nil {
			return err
		}
		if r.again != nil {
			v.Set(r.again.value(t).Addr())
		} else {
			v.Set(reflect.New(t))
		}
		return elem.read(r, v.Elem())
	}
}

func readSlice(t reflect.Type, elem *plan) func(*reader, reflect.Value) error {
	size := int(t.Elem().Size())
	return func(r *reader, v reflect.Value) error {
		if r.data[r.at] == msgpcode.Nil {
			r.at++
			return nil
		}
		n, ok := r.head(array)
		if !ok {
			return r.wrong("a list")
		}
		if n == 0 {
			return nil
		}
		if err := r.spend(n * size); err != nil {
			return err
		}
		if r.again != nil {
			v.Set(r.again.list(t, n))
		} else {
			v.Set(reflect.MakeSlice(t, n, n))
		}
		return readElements(r, v, elem)
	}
}

func readArray(elem *plan) func(*reader, reflect.Value) error {
	return func(r *reader, v reflect.Value) error {
		n, ok := r.head(array)
		if !ok || n != v.Len() {
			return unfit("must be a list of %d values", v.Len())
		}
		return readElements(r, v, elem)
	}
}

func readElements(r *reader, list reflect.Value, elem *plan) error {
	for i := range list.Len() {
		if err := elem.read(r, list.Index(i)); err != nil {
			return under("["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}

func readStruct(fields []field) func(*reader, reflect.Value) error {
	return func(r *reader, v reflect.Value) error {
		n, ok := r.head(array)
		if !ok {
			return r.wrong("the list of its fields")
		}
		if n > len(fields) && !r.lenient {
			return unfit("has %d fields, but this version knows only %d; the sender has a newer version", n, len(fields))
		}
		known := min(n, len(fields))
		if known > 0 {
			r.level = max(r.level, fields[known-1].since)
		}
		for i := range fields[:known] {
			if r.data[r.at] == fields[i].zero { // the field already has this value, as most fields do
				r.at++
				continue
			}
			if err := fields[i].read(r, v.Field(fields[i].index)); err != nil {
				return under("."+fields[i].name, err)
			}
		}
		r.skip(n - known)
		return nil
	}
}

func (r *reader) skip(n int) {
	for ; n > 0; n-- {
		c := &codes[r.data[r.at]]
		r.at++
		count := c.counted(r.data[r.at:])
		r.at += int(c.width)
		switch c.class {
		case text:
			r.at += count
		case array:
			n += count
		case table:
			n += 2 * count
		}
	}
}
