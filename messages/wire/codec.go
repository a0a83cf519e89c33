package wire

import (
	"reflect"
	"strings"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// Format is the encoding of a payload.
type Format uint8

// The encodings. A reply uses the encoding of its request.
const (
	Msgpack Format = iota
	JSON
)

// MaxPayload is the largest payload, in bytes, to write or read. The error for a larger one is TooLarge.
const MaxPayload = 8 << 20

// ContentType returns the format's media type, for a Content-Type header.
func (f Format) ContentType() string {
	if f == JSON {
		return "application/json"
	}
	return "application/msgpack"
}

// Detect finds out the format of a payload from its Content-Type header, which may be empty, or else from its first
// byte. '{', '[' and an empty payload mean JSON. Msgpack payloads are arrays and begin with 0x90 or above.
func Detect(data []byte, contentType string) Format {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "text/json":
		return JSON
	case "application/msgpack", "application/x-msgpack", "application/vnd.msgpack":
		return Msgpack
	}
	if len(data) == 0 || data[0] < 0x80 {
		return JSON
	}
	return Msgpack
}

// Marshal encodes a value. In msgpack a struct is the array of its exported fields in order, and equal values give
// equal bytes. In JSON, the fields of an embedded struct stand among the outer fields, and an empty list is [], never
// null.
//
// Types may contain booleans, integers, floats, strings, structs, slices, arrays and pointers. Maps, interfaces and
// types that contain themselves give an error of kind Internal.
func Marshal(v any, f Format) ([]byte, error) {
	data, err := Encode(v, f)
	if err != nil {
		return nil, err
	}
	if len(data) > MaxPayload {
		return nil, messages.Errorf(messages.TooLarge, "%s: %d bytes encoded, above the limit of %d; ask for less at a time", typeName(v), len(data), MaxPayload)
	}
	return data, nil
}

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Encode is Marshal without a bound on the size.
func Encode(v any, f Format) ([]byte, error) {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	}
	if !rv.IsValid() || rv.Kind() == reflect.Pointer {
		return nil, messages.Errorf(messages.Internal, "cannot encode %s: it is nil", typeName(v))
	}
	p, err := planOf(rv.Type())
	if err != nil {
		return nil, err
	}
	if f == JSON {
		return marshalJSON(rv)
	}
	buffer := scratch.Get().(*[]byte)
	*buffer = p.write((*buffer)[:0], rv)
	data := append([]byte(nil), *buffer...)
	if cap(*buffer) <= maxScratch {
		scratch.Put(buffer)
	}
	return data, nil
}

// maxScratch bounds the buffer that is kept for the next call, in bytes. The buffer of a rare large message is freed.
const maxScratch = 64 << 10

// Unmarshal decodes a payload into the value that v points to. It replaces the whole value; after an error the value is
// zero. An empty payload also gives the zero value.
//
// A payload may come from a stranger, so its size, depth and expanded size are bounded. Wrong counts, lengths or
// integers, extra fields or elements, repeated keys and trailing bytes give an error of kind Invalid or TooLarge, which
// names the field. Unmarshal accepts not-a-number, and, in msgpack, text that is not UTF-8.
func Unmarshal(data []byte, f Format, v any) error {
	_, err := unmarshal(data, f, v, &reader{})
	return err
}

// UnmarshalLevel is Unmarshal, and also returns the level that a reader needs for the payload: the highest level in the
// tags of its fields, or 1.
func UnmarshalLevel(data []byte, f Format, v any) (level int, err error) {
	return unmarshal(data, f, v, &reader{})
}

// UnmarshalReply is Unmarshal for replies and published messages. It detects the format, and skips unknown fields: the
// sender may run the next release.
func UnmarshalReply(data []byte, v any) error {
	_, err := unmarshal(data, Detect(data, ""), v, &reader{lenient: true})
	return err
}

func unmarshal(data []byte, f Format, v any, r *reader) (level int, err error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return 0, messages.Errorf(messages.Internal, "cannot decode into %s: it is no pointer to a value", typeName(v))
	}
	rv = rv.Elem()
	p, err := planOf(rv.Type())
	if err != nil {
		return 0, err
	}
	rv.SetZero()
	if len(data) > MaxPayload {
		return 0, messages.Errorf(messages.TooLarge, "payload of %d bytes: the limit is %d", len(data), MaxPayload)
	}
	r.level = 1
	if len(data) == 0 {
		return r.level, nil
	}
	if f == JSON {
		err = unmarshalJSON(data, rv, r)
	} else {
		err = unmarshalMsgpack(data, p, rv, r)
	}
	if err != nil {
		rv.SetZero()
	}
	return r.level, err
}

func unmarshalMsgpack(data []byte, p *plan, v reflect.Value, r *reader) error {
	if err := scan(data); err != nil {
		return err
	}
	r.data, r.budget = data, budgetFor(data)
	if err := p.read(r, v); err != nil {
		return refusal(v.Type(), err)
	}
	return nil
}

func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return "nil"
	}
	return t.String()
}
